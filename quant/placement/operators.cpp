// SPDX-License-Identifier: Apache-2.0
// The operators whose inputs can be quantized.
#include "quant/placement/operators.hpp"

#include <algorithm>
#include <iterator>

namespace bertcl::quant {
namespace {

constexpr Operator kOperators[] = {
    {"MatMul", 2, true}, {"Gemm", 2, true}, {"Conv", 2, true}, {"Add", 2},
    {"Mul", 2},          {"Gather", 1},     {"Softmax", 1},    {"LayerNormalization", 1},
    {"Gelu", 1},         {"Relu", 1},       {"Tanh", 1}};

}  // namespace

const Operator* find_operator(const onnx::NodeProto& node) {
  const auto* it = std::find_if(std::begin(kOperators), std::end(kOperators),
                                [&](const Operator& o) { return is_op(node, o.name); });
  return it == std::end(kOperators) ? nullptr : it;
}

std::vector<std::string> quantizable_operators() {
  std::vector<std::string> names;
  for (const Operator& op : kOperators) names.emplace_back(op.name);
  return names;
}

std::vector<std::string> weight_operators() {
  std::vector<std::string> names;
  for (const Operator& op : kOperators)
    if (op.weight) names.emplace_back(op.name);
  return names;
}

}  // namespace bertcl::quant
