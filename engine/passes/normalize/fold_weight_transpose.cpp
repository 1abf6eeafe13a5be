// SPDX-License-Identifier: Apache-2.0
// A Transpose after a dequantized weight moves into the weight.
//
//   w i8[N, K] -> DQ(axis 0) -> Transpose -> f32[K, N]
//   becomes
//   w' i8[K, N] -> DQ(axis 1)
#include <algorithm>

#include "ops/interpret.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool fold_weight_transpose_at(ir::Graph& g, ir::Node& node) {
  if (node.op != "Transpose") return false;
  ir::Node* dq = node.inputs[0]->producer;
  if (!dq || dq->op != "DequantizeLinear" || !dq->inputs[0]->is_constant()) return false;
  const auto& perm = node.ints_attribute("perm");
  ir::Value* w = dq->inputs[0];
  ir::Type type{w->type.dtype, node.output()->type.shape};
  ir::Node* moved = g.add_node("Transpose", {w}, {{"perm", perm}}, {{w->name, type}}, dq);
  const auto folded = ops::evaluate_constant(*moved);
  g.erase(moved);
  if (folded.empty()) return false;

  ir::Attributes attributes = dq->attributes;
  const auto rank = std::ssize(perm);
  std::int64_t axis = dq->int_attribute("axis", 1);
  if (axis < 0) axis += rank;
  attributes["axis"] = std::ranges::find(perm, axis) - perm.begin();
  std::vector<ir::Value*> operands = dq->inputs;
  operands[0] = g.add_constant(w->name, folded.front());
  replace(g, &node, {dq, &node}, "DequantizeLinear", operands, attributes);
  return true;
}

}  // namespace

Pass fold_weight_transpose() {
  return rewriting("fold_weight_transpose", fold_weight_transpose_at);
}

}  // namespace bertcl::passes
