// SPDX-License-Identifier: Apache-2.0
// Tensors of the Open Inference Protocol, as JSON or as bytes.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ir/tensor.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::serve {

/// "FP32", "INT64", "BOOL", ...
const char* datatype_of(ir::DType type);
std::optional<ir::DType> type_of_datatype(std::string_view datatype);

/// Throws Error for an extension of Triton's that changes what a tensor holds, or where it is.
void check_parameters(const std::optional<text::JsonNode>& parameters);

/// A tensor of a request: `data` in JSON, or the next bytes of `binary`, which are taken off.
/// Throws Error that names it.
ir::Tensor read_tensor(const text::JsonNode& input, std::string_view& binary);

/// Its `data` in JSON: all elements in one list. Throws HttpError 424 if there is NaN or
/// infinity.
std::string data_json(const ir::Tensor& tensor);

}  // namespace bertcl::serve
