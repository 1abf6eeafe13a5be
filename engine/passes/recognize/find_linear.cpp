// SPDX-License-Identifier: Apache-2.0
// A product with a constant weight, and the bias behind it, become one op.
//
//   x[..., K] -> MatMul(w[K, N]) -> Add(bias[N]) -> y[..., N]
//   becomes
//   x -> linear(w, bias) -> y
//
// The weight may be a constant or the DequantizeLinear of one.
#include "passes/match.hpp"
#include "passes/passes.hpp"

namespace bertcl::passes {
namespace {

bool is_weight(const ir::Value* w) {
  if (w->type.shape.size() != 2 || w->type.dtype != ir::DType::f32) return false;
  return w->is_constant() || (w->producer && w->producer->op == "DequantizeLinear" &&
                              w->producer->inputs[0]->is_constant());
}

bool is_bias(const ir::Value* b, const ir::Dim& n) {
  if (!b || !b->is_constant() || b->type.dtype != ir::DType::f32) return false;
  // [N], also with leading ones
  return !b->type.shape.empty() && b->type.shape.back() == n && element_count(b->type.shape) == n;
}

bool rewrite(ir::Graph& g, ir::Node& node) {
  if (node.op == "MatMul" && node.inputs[0]->type.dtype == ir::DType::f32 &&
      is_weight(node.inputs[1])) {
    Match m;
    m.nodes = {&node};
    replace(g, &node, m, "linear", {node.inputs[0], node.inputs[1]});
    return true;
  }
  if (node.op != "Add") return false;
  for (const int i : {0, 1}) {
    ir::Node* product = node.inputs[i]->producer;
    ir::Value* bias = node.inputs[1 - i];
    if (!product || product->op != "linear" || product->input(2)) continue;
    if (product->output()->users.size() != 1 || g.is_output(product->output())) continue;
    const ir::Dim n = product->output()->type.shape.back();
    if (!is_bias(bias, n) || node.output()->type != product->output()->type) continue;
    if (bias->type.shape.size() != 1)
      bias = g.add_constant(bias->name, bias->constant->reshaped({n.constant()}));
    Match m;
    m.nodes = {product, &node};
    replace(g, &node, m, "linear", {product->inputs[0], product->inputs[1], bias});
    return true;
  }
  return false;
}

}  // namespace

Pass find_linear() {
  return {"find_linear", [](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

}  // namespace bertcl::passes
