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
#include "ops/operands.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool lower_add_norm_q_at(ir::Graph& g, ir::Node& node) {
  if (node.op != add_norm::op) return false;
  bool changed = false;
  for (const add_norm::Term& term : add_norm::terms) {
    if (!node.input(term.value)) continue;
    const auto d = per_tensor_or_column_dequantized(node.inputs[term.value]);
    if (!d) continue;
    g.set_input(&node, term.value, d->quantized);
    g.set_input(&node, term.scale, d->scale);
    g.set_input(&node, term.zero_point, d->zero_point);
    node.sources = sources_of({&node, d->node});
    changed = true;
  }
  return changed;
}

}  // namespace

Pass lower_add_norm_q() { return rewriting("lower_add_norm_q", lower_add_norm_q_at); }

}  // namespace bertcl::passes
