// SPDX-License-Identifier: Apache-2.0
// A MatMul with a constant weight, and the bias after it, become one op.
//
//   x[..., K] -> MatMul(w[K, N]) -> Add(bias[N]) -> y[..., N]
//   becomes
//   x -> linear(w, bias) -> y
//
// The weight may be a constant or the DequantizeLinear of one. A bias that stands after the
// residual sum, as SkipLayerNormalization adds it, moves to its MatMul first, also to one of
// integers:
//
//   x -> MatMul(w) -> Add(residual) -> Add(bias[N]) -> y
//   becomes
//   x -> MatMul(w) -> Add(bias[N]) -> Add(residual) -> y
//
// The order of float additions changes, and so may the last bits.
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool is_weight(const ir::Value* w) {
  if (w->type.shape.size() != 2 || w->type.dtype != ir::DType::f32) return false;
  if (w->type.shape[0] == ir::Dim(0)) return false;  // GEMMs have at least one product in a sum
  return w->is_constant() || (w->producer && w->producer->op == "DequantizeLinear" &&
                              w->producer->inputs[0]->is_constant());
}

bool is_bias(const ir::Value* b, const ir::Dim& n) {
  return b && b->type.dtype == ir::DType::f32 && is_column_constant(b, n);
}

/// A MatMul with a constant weight, or the float form of one of integers: Cast and factors after
/// MatMulInteger.
bool is_matmul(const ir::Graph& g, const ir::Value* v) {
  const ir::Node* n = v->producer;
  if (!n || !g.used_once(v)) return false;
  if (n->op == linear::op) return !n->input(2);
  if (n->op == "MatMulInteger") return n->inputs[1]->is_constant();
  if (n->op == "Cast") return is_matmul(g, n->inputs[0]);
  if (n->op == "Mul") return is_matmul(g, n->inputs[0]) || is_matmul(g, n->inputs[1]);
  return n->op == "MatMul" && is_weight(n->inputs[1]);
}

/// Moves a bias after the residual sum to the MatMul.
bool hoist_bias(ir::Graph& g, ir::Node& node) {
  if (node.op != "Add") return false;
  for (const std::size_t i : {0u, 1u}) {
    ir::Node* sum = node.inputs[i]->producer;
    ir::Value* bias = node.inputs[1 - i];
    if (!sum || sum->op != "Add" || !g.used_once(sum->output())) continue;
    const ir::Type& type = node.output()->type;
    if (type.shape.empty() || !is_bias(bias, type.shape.back())) continue;
    for (const std::size_t j : {0u, 1u}) {
      ir::Value *matmul = sum->inputs[j], *residual = sum->inputs[1 - j];
      if (residual->is_constant() || matmul->type != type || residual->type != type ||
          !is_matmul(g, matmul))
        continue;
      ir::Value* biased = g.add("Add", {matmul, bias}, {}, type, sum, matmul->name + ".biased");
      biased->producer->sources = node.sources;
      replace(g, &node, {sum}, "Add", {biased, residual});
      return true;
    }
  }
  return false;
}

bool find_linear_at(ir::Graph& g, ir::Node& node) {
  if (node.op == "MatMul" && node.inputs[0]->type.dtype == ir::DType::f32 &&
      is_weight(node.inputs[1])) {
    replace(g, &node, {&node}, linear::op, {node.inputs[0], node.inputs[1]});
    return true;
  }
  if (node.op != "Add") return false;
  if (hoist_bias(g, node)) return true;
  for (const int i : {0, 1}) {
    ir::Node* matmul = node.inputs[i]->producer;
    ir::Value* bias = node.inputs[1 - i];
    if (!matmul || matmul->op != linear::op || matmul->input(2)) continue;
    if (matmul->output()->users.size() != 1 || g.is_output(matmul->output())) continue;
    const ir::Dim n = matmul->output()->type.shape.back();
    if (!is_bias(bias, n) || node.output()->type != matmul->output()->type) continue;
    replace(g, &node, {matmul, &node}, linear::op,
            {matmul->inputs[0], matmul->inputs[1], as_vector(g, bias)});
    return true;
  }
  return false;
}

}  // namespace

Pass find_linear() { return rewriting("find_linear", find_linear_at); }

}  // namespace bertcl::passes
