// SPDX-License-Identifier: Apache-2.0
// An activation after a linear moves into its epilogue.
//
//   linear -> Gelu -> y       becomes       linear {activation = "gelu"} -> y
#include "ops/op.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

std::string activation_of(const ir::Node& node) {
  if (node.op == "Gelu")
    return node.has("approximate") && node.string_attribute("approximate") == "tanh" ? "gelu_tanh"
                                                                                     : "gelu";
  if (node.op == "Relu") return "relu";
  if (node.op == "Tanh") return "tanh";
  return "";
}

bool fuse_activation_at(ir::Graph& g, ir::Node& node) {
  const std::string activation = activation_of(node);
  if (activation.empty()) return false;
  ir::Node* linear = node.inputs[0]->producer;
  if (!linear || !ops::traits(*linear).takes_activation || linear->has("activation") ||
      linear->output()->type.dtype != ir::DType::f32 || !g.used_once(linear->output()))
    return false;
  ir::Attributes attributes = linear->attributes;
  attributes["activation"] = activation;
  replace(g, &node, {linear, &node}, linear->op, linear->inputs, attributes);
  return true;
}

}  // namespace

Pass fuse_activation() { return rewriting("fuse_activation", fuse_activation_at); }

}  // namespace bertcl::passes
