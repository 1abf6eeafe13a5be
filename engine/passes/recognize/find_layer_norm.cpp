// SPDX-License-Identifier: Apache-2.0
// The decomposed spelling of LayerNorm becomes LayerNormalization (ONNX operator, opset 17).
//
//   mean = ReduceMean(x);  d = x - mean;  var = ReduceMean(d^2)
//   y = d / sqrt(var + eps) * gamma + beta                       beta may be absent
//
// Torch's exporter casts d of a model in f16 to f64, and d / sqrt(var + eps) back.
//
// Results may change by rounding.
#include <utility>

#include "passes/match.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// Without beta.
Pattern times_gamma() {
  const Pattern x = any("x");
  const Pattern mean = op("ReduceMean", {x}, "mean");
  const Pattern d = one_of({op("Sub", {x, mean}, "d"), op("Cast", {op("Sub", {x, mean})}, "d")});
  // Old exporters write the difference twice.
  const Pattern d2 = op("Sub", {x, mean});
  const Pattern square =
      one_of({op("Pow", {d, scalar(2.0)}), op("Mul", {d, d}), op("Pow", {d2, scalar(2.0)})});
  const Pattern deviation =
      op("Sqrt", {op("Add", {op("ReduceMean", {square}, "variance"), scalar("epsilon")})});
  const Pattern normal =
      one_of({op("Div", {d, deviation}), op("Mul", {d, op("Reciprocal", {deviation})}),
              op("Div", {d2, deviation})});
  return op("Mul", {one_of({normal, op("Cast", {normal})}), constant("gamma")});
}

/// True if beta follows.
bool is_shifted(const ir::Graph& graph, const ir::Node& node) {
  const ir::Value* y = node.output();
  if (!graph.used_once(y) || y->users.empty() || y->users.front()->op != "Add") return false;
  const auto& operands = y->users.front()->inputs;
  return operands[operands[0] == y ? 1 : 0]->is_constant();
}

bool find_layer_norm_at(ir::Graph& graph, ir::Node& node) {
  static const Pattern without_beta = times_gamma(),
                       with_beta = op("Add", {times_gamma(), constant("beta")});
  Match m;
  if (node.op == "Mul" ? is_shifted(graph, node) || !matches(without_beta, node.output(), m)
                       : node.op != "Add" || !matches(with_beta, node.output(), m))
    return false;
  if (!reduces_last_axis(*m["mean"]->producer) || !reduces_last_axis(*m["variance"]->producer))
    return false;
  if (node.output()->type != m["x"]->type) return false;
  const ir::Dim hidden = m["x"]->type.shape.back();
  const ir::Shape vector{hidden};
  std::vector<ir::Value*> operands{m["x"], m["gamma"]};
  if (m["beta"]) operands.push_back(m["beta"]);
  for (std::size_t i = 1; i < operands.size(); ++i)
    if (operands[i]->type.shape != vector) return false;
  replace(graph, &node, m.nodes, "LayerNormalization", std::move(operands),
          {{"axis", -1}, {"epsilon", m.number("epsilon")}});
  return true;
}

}  // namespace

Pass find_layer_norm() { return rewriting("find_layer_norm", find_layer_norm_at); }

}  // namespace bertcl::passes
