// SPDX-License-Identifier: Apache-2.0
// LayerNormalization over the last axis, with the residual Add before it, becomes one op.
//
//   x, residual -> Add -> LayerNormalization -> y
//   becomes
//   add_norm(x, residual, gamma, beta) -> y          residual may be absent
#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool find_add_norm_at(ir::Graph& g, ir::Node& norm) {
  if (norm.op != "LayerNormalization" || !normalizes_last_axis(norm)) return false;
  ir::Value* x = norm.inputs[0];
  ir::Value* residual = nullptr;
  Match m;
  m.nodes = {&norm};
  ir::Node* add = x->producer;
  if (add && add->op == "Add" && g.used_once(x) && add->inputs[0]->type == x->type &&
      add->inputs[1]->type == x->type) {
    m.nodes = {add, &norm};
    x = add->inputs[0];
    residual = add->inputs[1];
  }
  replace(g, &norm, m, "add_norm", {x, residual, norm.inputs[1], norm.input(2)},
          {{"epsilon", norm.float_attribute("epsilon", 1e-5)}});
  return true;
}

}  // namespace

Pass find_add_norm() {
  return {"find_add_norm", [](ir::Graph& g) { return rewrite_all(g, find_add_norm_at); }};
}

}  // namespace bertcl::passes
