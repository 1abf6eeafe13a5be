// SPDX-License-Identifier: Apache-2.0
// The product in a gated feed-forward part becomes one op, to which fuse_quantize adds what
// follows.
//
//   gate, up -> linear {activation = "gelu"}, linear -> Mul -> y
//   becomes
//   gate, up -> linear {activation = "gelu"}, linear -> gated -> y
//
//   gate -> Sigmoid -> s;  gate, s -> Mul -> a;  a, up -> Mul -> y
//   becomes
//   gated(gate, up) {activation = "silu"} -> y
//
// Results may change by rounding.
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/match.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool is_linear(const ir::Value* v) {
  return v->producer && ops::traits(*v->producer).takes_activation &&
         v->type.dtype == ir::DType::f32;
}

bool fuse_gated_at(ir::Graph& g, ir::Node& node) {
  if (node.op != "Mul" || node.output()->type.dtype != ir::DType::f32) return false;
  static const Pattern silu = op("Mul", {any("gate"), op("Sigmoid", {any("gate")})});
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value *activated = node.inputs[i], *up = node.inputs[1 - i];
    if (activated->type != node.output()->type || up->type != activated->type || !is_linear(up) ||
        !g.used_once(activated))
      continue;
    if (is_linear(activated) && activated->producer->has("activation")) {
      replace(g, &node, {&node}, gated::op, {activated, up});
      return true;
    }
    Match m;
    if (matches(silu, activated, m) && is_linear(m["gate"])) {
      m.nodes.push_back(&node);
      replace(g, &node, m.nodes, gated::op, {m["gate"], up}, {{"activation", "silu"}});
      return true;
    }
  }
  return false;
}

}  // namespace

Pass fuse_gated() { return rewriting("fuse_gated", fuse_gated_at); }

}  // namespace bertcl::passes
