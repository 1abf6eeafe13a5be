// SPDX-License-Identifier: Apache-2.0
// Types of the graph's inputs and the names of their dynamic extents.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace onnx {
class ValueInfoProto;
}

namespace bertcl::onnx_io {

/// A name with the characters that the text form reserves replaced by '_'.
std::string symbol_name(std::string name);

/// Name and type of each input. Unnamed dynamic extents get a symbol of their own. Those of BERT's
/// inputs are `batch` and `seq`, and so is every other extent that the file calls by the same name;
/// where the file has several encoders, only if it calls them all by one name.
std::vector<std::pair<std::string, ir::Type>> input_types(
    const std::vector<const onnx::ValueInfoProto*>& inputs, const std::string& file);

}  // namespace bertcl::onnx_io
