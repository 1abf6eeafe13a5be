// SPDX-License-Identifier: Apache-2.0
// The decomposed spelling of RMSNorm becomes RMSNormalization (ONNX operator, opset 23).
//
//   y = x / sqrt(ReduceMean(x^2) + eps) * gamma
//
// Runs after find_layer_norm, whose differences to the mean have the same form. Results may change
// by rounding.
#include "passes/match.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

Pattern rms_norm() {
  const Pattern x = any("x");
  const Pattern square = one_of({op("Pow", {x, scalar(2.0)}), op("Mul", {x, x})});
  const Pattern mean = op("Add", {op("ReduceMean", {square}, "mean"), scalar("epsilon")});
  const Pattern root = op("Sqrt", {mean});
  const Pattern inverse = one_of(
      {op("Reciprocal", {root}), op("Div", {scalar(1.0), root}), op("Pow", {mean, scalar(-0.5)})});
  const Pattern normal = one_of({op("Div", {x, root}), op("Mul", {x, inverse})});
  return op("Mul", {normal, constant("gamma")});
}

bool find_rms_norm_at(ir::Graph& graph, ir::Node& node) {
  static const Pattern pattern = rms_norm();
  Match m;
  if (node.op != "Mul" || !matches(pattern, node.output(), m)) return false;
  if (!reduces_last_axis(*m["mean"]->producer)) return false;
  const ir::Type& type = m["x"]->type;
  if (node.output()->type != type) return false;
  if (m["gamma"]->type != ir::Type{type.dtype, {type.shape.back()}}) return false;
  replace(graph, &node, m.nodes, "RMSNormalization", {m["x"], m["gamma"]},
          {{"axis", -1}, {"epsilon", m.number("epsilon")}});
  return true;
}

}  // namespace

Pass find_rms_norm() { return rewriting("find_rms_norm", find_rms_norm_at); }

}  // namespace bertcl::passes
