// SPDX-License-Identifier: Apache-2.0
// Quantized operands of the residual sum are dequantized inside add_norm.
//
//   xq -> DQ --+
//               add_norm(gamma, beta) -> y
//   rq -> DQ --+
//   becomes
//   add_norm(xq, rq, gamma, beta, x_scale, x_zero_point, residual_scale, residual_zero_point) -> y
//
// Scales are per tensor or per column.
#include "passes/match.hpp"
#include "passes/passes.hpp"
#include "passes/quant_params.hpp"

namespace bertcl::passes {
namespace {

bool rewrite(ir::Graph& g, ir::Node& node) {
  if (node.op != "add_norm") return false;
  bool changed = false;
  for (const std::size_t i : {0u, 1u}) {
    if (!node.input(i)) continue;
    const auto d = per_column_dequantized(node.inputs[i]);
    if (!d) continue;
    g.set_input(&node, i, d->quantized);
    g.set_input(&node, 4 + 2 * i, d->scale);
    g.set_input(&node, 5 + 2 * i, d->zero_point);
    node.sources.insert(node.sources.end(), d->node->sources.begin(), d->node->sources.end());
    changed = true;
  }
  return changed;
}

}  // namespace

Pass lower_add_norm_q() {
  return {"lower_add_norm_q", [](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

}  // namespace bertcl::passes
