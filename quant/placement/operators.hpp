// SPDX-License-Identifier: Apache-2.0
// The operators whose inputs can be quantized.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// An operator whose inputs 0 to `data` - 1 carry data; `weight`: a constant input 1 is a weight.
struct Operator {
  std::string_view name;
  int data;
  bool weight = false;
};

/// That of a node; null: its inputs cannot be quantized.
const Operator* find_operator(const onnx::NodeProto& node);

/// The names of all.
std::vector<std::string> quantizable_operators();
/// The ones that have weights.
std::vector<std::string> weight_operators();

}  // namespace bertcl::quant
