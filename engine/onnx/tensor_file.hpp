// SPDX-License-Identifier: Apache-2.0
// A file that holds one TensorProto, as the test data sets of ONNX do.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

#include "ir/tensor.hpp"

namespace bertcl::onnx_io {

/// Name (may be empty) and values. Throws bertcl::Error naming the file if it cannot be read, is
/// no tensor, or has an unsupported element type.
std::pair<std::string, ir::Tensor> read_tensor_file(const std::filesystem::path& path);

}  // namespace bertcl::onnx_io
