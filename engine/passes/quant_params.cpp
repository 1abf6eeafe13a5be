// SPDX-License-Identifier: Apache-2.0
// Reading of QuantizeLinear and DequantizeLinear nodes.
#include "passes/quant_params.hpp"

#include <algorithm>
#include <cmath>

#include "ops/op.hpp"
#include "passes/node_queries.hpp"

namespace bertcl::passes {

bool is_per_tensor(const ir::Node& node) {
  return scalar_value(node.input(1)) && (!node.input(2) || scalar_value(node.input(2)));
}

bool is_per_tensor_or_column(const ir::Node& node) {
  if (is_per_tensor(node)) return true;
  const ir::Value *scale = node.inputs[1], *zero = node.input(2);
  if (!scale->is_constant() || (zero && !zero->is_constant())) return false;
  const ir::Shape& shape = node.inputs[0]->type.shape;
  if (shape.empty() || !ops::is_last_axis(node, 1, shape)) return false;
  const auto fits = [&](const ir::Value* v) { return v->type.shape == ir::Shape{shape.back()}; };
  return fits(scale) && (!zero || fits(zero));
}

std::optional<Dequantized> per_tensor_or_column_dequantized(const ir::Value* v) {
  ir::Node* node = v->producer;
  if (!node || node->op != "DequantizeLinear" || !is_per_tensor_or_column(*node))
    return std::nullopt;
  if (!ir::is_int8(node->inputs[0]->type.dtype)) return std::nullopt;
  return Dequantized{node, node->inputs[0], node->inputs[1], node->input(2)};
}

std::optional<Dequantized> per_tensor_dequantized(const ir::Value* v) {
  const auto found = per_tensor_or_column_dequantized(v);
  return found && is_per_tensor(*found->node) ? found : std::nullopt;
}

std::int64_t zero_point_of(const ir::Value* zero_point) {
  return zero_point ? zero_point->constant->to_ints().front() : 0;
}

bool has_inverse(const ir::Value& scale) {
  return std::ranges::all_of(scale.constant->to_doubles(),
                             [](double s) { return std::isfinite(1.0f / static_cast<float>(s)); });
}

bool same_parameters(const ir::Node& a, const ir::Node& b) {
  return is_per_tensor(a) && is_per_tensor(b) &&
         scalar_value(a.input(1)) == scalar_value(b.input(1)) &&
         zero_point_of(a.input(2)) == zero_point_of(b.input(2));
}

}  // namespace bertcl::passes
