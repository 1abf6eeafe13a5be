// SPDX-License-Identifier: Apache-2.0
// Reading of QuantizeLinear and DequantizeLinear nodes.
#include "passes/quant_params.hpp"

#include "passes/match.hpp"

namespace bertcl::passes {

bool is_per_tensor(const ir::Node& node) {
  return scalar_value(node.input(1)) && (!node.input(2) || scalar_value(node.input(2)));
}

std::optional<Dequantized> per_tensor_dequantized(const ir::Value* v) {
  ir::Node* node = v->producer;
  if (!node || node->op != "DequantizeLinear" || !is_per_tensor(*node)) return std::nullopt;
  if (!ir::is_int8(node->inputs[0]->type.dtype)) return std::nullopt;
  return Dequantized{node, node->inputs[0], node->inputs[1], node->input(2)};
}

std::int64_t zero_point_of(const ir::Value* zero_point) {
  return zero_point ? zero_point->constant->to_ints().front() : 0;
}

bool same_parameters(const ir::Node& a, const ir::Node& b) {
  return is_per_tensor(a) && is_per_tensor(b) &&
         scalar_value(a.input(1)) == scalar_value(b.input(1)) &&
         zero_point_of(a.input(2)) == zero_point_of(b.input(2));
}

}  // namespace bertcl::passes
