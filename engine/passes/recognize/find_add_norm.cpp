// SPDX-License-Identifier: Apache-2.0
// LayerNormalization or RMSNormalization over the last axis, with the residual Add before it,
// becomes one op.
//
//   x, residual -> Add -> LayerNormalization -> y
//   becomes
//   add_norm(x, residual, gamma, beta) -> y          residual may be absent
//
// A sum that is read elsewhere, too, as where norms come before their layers, is its second result:
//
//   x, residual -> Add -> s -> RMSNormalization -> y
//   becomes
//   add_norm(x, residual, gamma) {rms = 1, sum = 1} -> y, s
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool find_add_norm_at(ir::Graph& g, ir::Node& norm) {
  const bool rms = norm.op == "RMSNormalization";
  if ((!rms && norm.op != "LayerNormalization") || !normalizes_last_axis(norm)) return false;
  ir::Value* x = norm.inputs[0];
  ir::Value* residual = nullptr;
  std::vector<ir::Node*> covered = {&norm};
  ir::Node* add = x->producer;
  if (add && add->op == "Add" && add->inputs[0]->type == x->type &&
      add->inputs[1]->type == x->type) {
    covered = {add, &norm};
    x = add->inputs[0];
    residual = add->inputs[1];
  }
  std::vector<ir::Value*> operands{x, residual, norm.inputs[1], norm.input(2)};
  ir::Attributes attributes{{"epsilon", norm.float_attribute("epsilon", 1e-5)}};
  if (rms) attributes["rms"] = 1;
  if (!residual || g.used_once(add->output())) {
    replace(g, &norm, covered, add_norm::op, std::move(operands), std::move(attributes));
    return true;
  }
  attributes["sum"] = 1;
  ir::Value* sum = add->output();
  // In the place of the Add: other readers of the sum may stand before the norm.
  ir::Node* made =
      g.add_node(add_norm::op, std::move(operands), std::move(attributes),
                 {{norm.output()->name, norm.output()->type}, {sum->name, sum->type}}, add);
  made->sources = sources_of(covered);
  replace_uses_and_name(g, norm.output(), made->outputs[0]);
  replace_uses_and_name(g, sum, made->outputs[1]);
  g.erase(&norm);
  g.erase(add);
  return true;
}

}  // namespace

Pass find_add_norm() { return rewriting("find_add_norm", find_add_norm_at); }

}  // namespace bertcl::passes
