// SPDX-License-Identifier: Apache-2.0
// The spellings of GELU become Gelu (ONNX operator, opset 20; Hendrycks and Gimpel, 2016).
//
//   erf:   y = x * (1 + erf(x / sqrt(2))) * 0.5        in every association of the three factors
//   tanh:  y = 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
#include <cmath>

#include "passes/match.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// half * x * gate, however the three are associated.
Pattern product(const Pattern& x, const Pattern& gate) {
  const Pattern half = scalar(0.5);
  const Pattern half_x = one_of({op("Mul", {x, half}), op("Div", {x, scalar(2.0)})});
  return one_of({op("Mul", {op("Mul", {x, gate}), half}),
                 op("Div", {op("Mul", {x, gate}), scalar(2.0)}), op("Mul", {half_x, gate}),
                 op("Mul", {x, op("Mul", {gate, half})})});
}

Pattern erf_form() {
  const Pattern x = any("x");
  const Pattern argument =
      one_of({op("Div", {x, scalar(std::sqrt(2.0))}), op("Mul", {x, scalar(std::sqrt(0.5))})});
  return product(x, op("Add", {op("Erf", {argument}), scalar(1.0)}));
}

Pattern tanh_form() {
  const Pattern x = any("x");
  const Pattern square = one_of({op("Mul", {x, x}), op("Pow", {x, scalar(2.0)})});
  const Pattern cube = one_of({op("Pow", {x, scalar(3.0)}), op("Mul", {square, x})});
  const Pattern c = scalar(0.044715);
  // x + c x^3, also as x (1 + c x^2)
  const Pattern inner = one_of({op("Add", {x, op("Mul", {cube, c})}),
                                op("Add", {x, op("Mul", {op("Mul", {x, c}), square})}),
                                op("Mul", {x, op("Add", {op("Mul", {square, c}), scalar(1.0)})})});
  const Pattern k = scalar(std::sqrt(2.0 / M_PI));
  const Pattern argument =
      one_of({op("Mul", {inner, k}),
              op("Mul", {op("Mul", {x, k}), op("Add", {op("Mul", {square, c}), scalar(1.0)})}),
              op("Mul", {op("Mul", {x, k}),
                         op("Add", {op("Mul", {op("Mul", {x, c}), x}), scalar(1.0)})})});
  return product(x, op("Add", {op("Tanh", {argument}), scalar(1.0)}));
}

bool find_gelu_at(ir::Graph& graph, ir::Node& node) {
  static const Pattern erf = erf_form(), tanh = tanh_form();
  if (node.op != "Mul" && node.op != "Div") return false;
  Match m;
  const bool exact = matches(erf, node.output(), m);
  if (!exact && !matches(tanh, node.output(), m)) return false;
  if (node.output()->type != m["x"]->type) return false;  // a constant of higher rank repeats x
  replace(graph, &node, m.nodes, "Gelu", {m["x"]},
          {{"approximate", std::string(exact ? "none" : "tanh")}});
  return true;
}

}  // namespace

Pass find_gelu() { return rewriting("find_gelu", find_gelu_at); }

}  // namespace bertcl::passes
