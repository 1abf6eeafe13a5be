// SPDX-License-Identifier: Apache-2.0
// Nodes that pass their operand through unchanged disappear.
//
//   Identity, Cast to the same type, Reshape and Expand to the same shape, Transpose that moves
//   nothing, Concat of one operand, x + 0, x - 0, x * 1, x / 1; two Transposes and two Reshapes in
//   a row become one.
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool is_number(const ir::Value* v, double number) { return scalar_value(v) == number; }

/// The operand that `node` hands on, or null.
ir::Value* passed_on(const ir::Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty() || !node.inputs[0]) return nullptr;
  ir::Value* x = node.inputs[0];
  const ir::Type& type = node.output()->type;
  if (node.op == "Identity") return x;
  if (node.op == "Concat" && node.inputs.size() == 1) return x;
  if (node.op == "Add" || node.op == "Mul") {
    const double neutral = node.op == "Add" ? 0.0 : 1.0;
    for (const std::size_t i : {0u, 1u})
      if (is_number(node.inputs[1 - i], neutral) && node.inputs[i]->type == type)
        return node.inputs[i];
    return nullptr;
  }
  if (x->type != type) return nullptr;
  if (node.op == "Sub" && is_number(node.inputs[1], 0.0)) return x;
  if (node.op == "Div" && is_number(node.inputs[1], 1.0)) return x;
  if (node.op == "Cast" || node.op == "Reshape" || node.op == "Expand") return x;
  if (node.op == "Transpose") {
    const auto& perm = node.ints_attribute("perm");
    for (std::size_t i = 0; i < perm.size(); ++i)
      if (perm[i] != static_cast<std::int64_t>(i)) return nullptr;
    return x;
  }
  return nullptr;
}

bool join_with_producer(ir::Graph& g, ir::Node& node) {
  if (node.inputs.size() != 1 || !node.inputs[0]->producer) return false;
  const ir::Node& before = *node.inputs[0]->producer;
  if (before.op != node.op || before.inputs.size() != 1) return false;
  if (node.op == "Transpose") {
    std::vector<std::int64_t> perm;
    for (const std::int64_t axis : node.ints_attribute("perm"))
      perm.push_back(before.ints_attribute("perm").at(axis));
    node.attributes["perm"] = perm;
  } else if (node.op != "Reshape") {
    return false;
  }
  g.set_input(&node, 0, before.inputs[0]);
  return true;
}

bool drop_identity_at(ir::Graph& g, ir::Node& node) {
  if (ir::Value* x = passed_on(node)) {
    g.replace_uses(node.output(), x);
    g.erase(&node);
    return true;
  }
  return join_with_producer(g, node);
}

}  // namespace

Pass drop_identity() { return rewriting("drop_identity", drop_identity_at); }

}  // namespace bertcl::passes
