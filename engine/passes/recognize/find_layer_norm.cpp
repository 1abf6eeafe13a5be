// SPDX-License-Identifier: Apache-2.0
// The decomposed spelling of LayerNorm becomes LayerNormalization (ONNX operator, opset 17).
//
//   mean = ReduceMean(x);  d = x - mean;  var = ReduceMean(d^2)
//   y = d / sqrt(var + eps) * gamma + beta
#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool reduces_last_axis(const ir::Node& mean) {
  const auto rank = static_cast<std::int64_t>(mean.inputs[0]->type.shape.size());
  if (!mean.has("axes")) return false;
  const auto& axes = mean.ints_attribute("axes");
  return axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
}

Pattern decomposed() {
  const Pattern x = any("x");
  const Pattern mean = op("ReduceMean", {x}, "mean");
  const Pattern d = op("Sub", {x, mean}, "d");
  // Old exporters write the difference twice.
  const Pattern d2 = op("Sub", {x, mean});
  const Pattern square =
      one_of({op("Pow", {d, scalar(2.0)}), op("Mul", {d, d}), op("Pow", {d2, scalar(2.0)})});
  const Pattern deviation =
      op("Sqrt", {op("Add", {op("ReduceMean", {square}, "variance"), scalar("epsilon")})});
  const Pattern normal =
      one_of({op("Div", {d, deviation}), op("Mul", {d, op("Reciprocal", {deviation})}),
              op("Div", {d2, deviation})});
  return op("Add", {op("Mul", {normal, constant("gamma")}), constant("beta")});
}

bool find_layer_norm_at(ir::Graph& graph, ir::Node& node) {
  static const Pattern pattern = decomposed();
  Match m;
  if (node.op != "Add" || !matches(pattern, node.output(), m)) return false;
  if (!reduces_last_axis(*m["mean"]->producer) || !reduces_last_axis(*m["variance"]->producer))
    return false;
  const ir::Dim hidden = m["x"]->type.shape.back();
  const ir::Shape vector{hidden};
  if (m["gamma"]->type.shape != vector || m["beta"]->type.shape != vector) return false;
  replace(graph, &node, m, "LayerNormalization", {m["x"], m["gamma"], m["beta"]},
          {{"axis", std::int64_t{-1}}, {"epsilon", m.number("epsilon")}});
  return true;
}

}  // namespace

Pass find_layer_norm() {
  return {"find_layer_norm", [](ir::Graph& g) { return rewrite_all(g, find_layer_norm_at); }};
}

}  // namespace bertcl::passes
