// SPDX-License-Identifier: Apache-2.0
// LayerNormalization or RMSNormalization that no add_norm has taken (over several axes, or with
// computed vectors) becomes the operators it is made of.
//
//   LayerNormalization(x, scale, bias) {axis, epsilon}
//   becomes
//   c = x - ReduceMean(x);  c / Sqrt(ReduceMean(c * c) + epsilon) * scale + bias
//
// In RMSNormalization c is x, and there is no bias.
#include <numeric>

#include "ops/op.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool expand_layer_norm_at(ir::Graph& g, ir::Node& norm) {
  const bool rms = norm.op == "RMSNormalization";
  if (!rms && norm.op != "LayerNormalization") return false;
  ir::Value* x = norm.inputs[0];
  const ir::Type type = norm.output()->type;
  const std::size_t rank = type.shape.size(), axis = ops::axis_of(norm, "axis", -1, rank);
  std::vector<std::int64_t> axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  ir::Type row = type;
  for (const std::int64_t a : axes) row.shape[a] = 1;

  const Expansion emit(g, norm);
  const ir::Attributes rows{{"axes", axes}, {"keepdims", 1}};
  ir::Value* epsilon = g.add_constant(
      "epsilon", ir::Tensor::scalar(static_cast<float>(norm.float_attribute("epsilon", 1e-5))));
  ir::Value* centred = rms ? x : emit("Sub", {x, emit("ReduceMean", {x}, row, rows)}, type);
  ir::Value* variance = emit("ReduceMean", {emit("Mul", {centred, centred}, type)}, row, rows);
  ir::Value* deviation = emit("Sqrt", {emit("Add", {variance, epsilon}, row)}, row);
  ir::Value* y = emit("Div", {centred, deviation}, type);
  if (norm.input(1)) y = emit("Mul", {y, norm.input(1)}, type);
  if (norm.input(2)) y = emit("Add", {y, norm.input(2)}, type);
  emit.finish(y);
  return true;
}

}  // namespace

Pass expand_layer_norm() { return rewriting("expand_layer_norm", expand_layer_norm_at); }

}  // namespace bertcl::passes
