// SPDX-License-Identifier: Apache-2.0
// A per-channel factor before QuantizeLinear moves into its scale.
//
//   x -> Mul m[K] -> Q(s, z) -> q      becomes      x -> Q(s / m[K], z[K]) {axis = last} -> q
//
// SmoothQuant (Xiao et al., 2022) divides activations by channel so and multiplies the rows of the
// weight; DequantizeLinear after q keeps its scale. The one spelling afterwards is a scale per
// channel, which quantizers also write at once. m may be on either side of Mul, or the divisor of
// Div, and must be positive. Dividing the scale instead of multiplying x may change a result next
// to a rounding tie.
#include <cmath>

#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// True for a constant with one element for each index of the last axis of `x`, and no other.
bool is_channel_vector(const ir::Value* v, const ir::Shape& x) {
  return !x.empty() && v->type.shape.size() <= x.size() && is_column_constant(v, x.back());
}

/// The factors of x * m or x / c, with x; empty for any other node.
std::vector<double> channel_factors(const ir::Node& node, ir::Value** x) {
  const bool divides = node.op == "Div";
  if (node.op != "Mul" && !divides) return {};
  for (const std::size_t i : {1u, 0u}) {
    *x = node.inputs[1 - i];
    if ((*x)->type != node.output()->type || !is_channel_vector(node.inputs[i], (*x)->type.shape)) {
      if (divides) return {};
      continue;
    }
    std::vector<double> factors = node.inputs[i]->constant->to_doubles();
    if (divides)
      for (double& f : factors) f = 1.0 / f;
    return factors;
  }
  return {};
}

bool fold_channel_factor_at(ir::Graph& g, ir::Node& q) {
  if (q.op != "QuantizeLinear" || !is_per_tensor_or_column(q)) return false;
  ir::Node* mul = q.inputs[0]->producer;
  ir::Value* x = nullptr;
  if (!mul) return false;
  std::vector<double> scales = channel_factors(*mul, &x);
  if (scales.empty()) return false;

  const std::vector<double> scale = q.inputs[1]->constant->to_doubles();
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = scale[scale.size() == 1 ? 0 : i] / scales[i];
    const auto single = static_cast<float>(scales[i]);
    if (!std::isnormal(single) || single < 0) return false;
  }
  const ir::Sizes shape{std::ssize(scales)};
  g.set_input(&q, 0, x);
  g.set_input(&q, 1,
              g.add_constant(q.inputs[1]->name,
                             ir::Tensor::of(shape, scales).converted(q.inputs[1]->type.dtype)));
  if (ir::Value* zero = q.input(2); zero && zero->type.shape.size() != 1) {
    const std::vector<std::int64_t> zeros(scales.size(), zero_point_of(zero));
    g.set_input(
        &q, 2,
        g.add_constant(zero->name, ir::Tensor::of(shape, zeros).converted(zero->type.dtype)));
  }
  q.attributes["axis"] = std::ssize(x->type.shape) - 1;
  q.sources = sources_of({mul, &q});
  return true;
}

}  // namespace

Pass fold_channel_factor() { return rewriting("fold_channel_factor", fold_channel_factor_at); }

}  // namespace bertcl::passes
