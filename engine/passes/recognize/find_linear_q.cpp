// SPDX-License-Identifier: Apache-2.0
// An int8 GEMM with a constant weight, and what turns its sums into floats, become one op.
//
//   xq -> MatMulInteger(w[K, N], x_zero_point, w_zero_point) -> Cast -> Mul(x_scale * w_scale[N])
//     -> Add(bias[N]) -> y[..., N]
//   becomes
//   linear_q(xq, w, bias, x_scale, x_zero_point, w_scale, _, _, w_zero_point) -> y
//
// The scales may stand in one factor or in several, in any order. x_scale and x_zero_point may be
// computed, as by DynamicQuantizeLinear, x_scale also for each row, as by quantize_rows; those of
// the weight are constant.

#include "ops/operands.hpp"
#include "passes/int8_weight.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// One number for each row of a MatMul: [.., 1] for [.., N].
bool is_per_row(const ir::Value* matmul, const ir::Value* v) {
  ir::Shape rows = matmul->type.shape;
  rows.back() = ir::Dim(1);
  return v->type.shape == rows;
}

/// MatMulInteger -> Cast becomes a linear_q whose scales are 1.
bool start(ir::Graph& g, ir::Node& cast) {
  ir::Node* matmul = cast.inputs[0]->producer;
  if (!matmul || matmul->op != "MatMulInteger" || cast.output()->type.dtype != ir::DType::f32 ||
      !g.used_once(matmul->output()))
    return false;
  ir::Value *x = matmul->inputs[0], *w = matmul->inputs[1];
  ir::Value *x_zero = matmul->input(2), *w_zero = matmul->input(3);
  if (!w->is_constant() || w->type.shape.size() != 2) return false;
  // GEMMs have a column, and at least one product in a sum.
  if (element_count(w->type.shape) == ir::Dim(0)) return false;
  if (x_zero && !ir::is_scalar(x_zero)) return false;
  if (w_zero && !w_zero->is_constant()) return false;
  if (w_zero && !ir::is_scalar(w_zero) && !is_column_constant(w_zero, w->type.shape[1]))
    return false;
  const Int8Weight weight = to_int8(g, w, w_zero);
  if (w->type.shape[0].constant() > max_exact_products(weight.zero_point)) return false;
  ir::Value* one = g.add_constant("one", ir::Tensor::scalar(1.0f));
  std::vector<ir::Value*> operands{x, weight.values, nullptr, one, x_zero, one};
  if (weight.zero_point) set_operand(operands, linear_q::w_zero_point, weight.zero_point);
  replace(g, &cast, {matmul, &cast}, linear_q::op, operands);
  return true;
}

/// The product of the factors: a computed scalar or one per row, or null, times a constant, one or
/// per column.
struct Scales {
  ir::Value* computed = nullptr;
  std::vector<float> constant;
};

/// False if `factor` is not a product of such factors.
bool take_factor(const ir::Value* matmul, ir::Value* factor, const ir::Dim& n, Scales& scales) {
  if (factor->type.dtype != ir::DType::f32 || factor->type.shape.size() > matmul->type.shape.size())
    return false;
  if (factor->is_constant()) {
    if (!ir::is_scalar(factor) && !is_column_constant(factor, n)) return false;
    const auto values = factor->constant->to_doubles();
    if (scales.constant.size() < values.size())
      scales.constant.resize(values.size(), scales.constant.front());
    for (std::size_t i = 0; i < scales.constant.size(); ++i)
      scales.constant[i] *= static_cast<float>(values[values.size() == 1 ? 0 : i]);
    return true;
  }
  if (const ir::Node* mul = factor->producer; mul && mul->op == "Mul") {
    Scales attempt = scales;
    if (take_factor(matmul, mul->inputs[0], n, attempt) &&
        take_factor(matmul, mul->inputs[1], n, attempt)) {
      scales = std::move(attempt);
      return true;
    }
  }
  if (scales.computed || !(ir::is_scalar(factor) || is_per_row(matmul, factor))) return false;
  scales.computed = factor;
  return true;
}

/// A linear_q that this pass made and that may still take scales and a bias; null for all else.
ir::Node* open_matmul(const ir::Graph& g, const ir::Value* v) {
  ir::Node* n = v->producer;
  if (!n || n->op != linear_q::op || n->input(linear_q::bias) || n->input(linear_q::out_scale) ||
      n->has("activation") || !g.used_once(v))
    return nullptr;
  return n;
}

bool take_scale(ir::Graph& g, ir::Node& mul) {
  for (const std::size_t i : {0u, 1u}) {
    ir::Node* matmul = open_matmul(g, mul.inputs[i]);
    if (!matmul || mul.output()->type != matmul->output()->type) continue;
    const ir::Dim n = matmul->inputs[linear_q::w]->type.shape[1];
    ir::Value* x_scale = matmul->inputs[linear_q::x_scale];
    Scales scales{x_scale->is_constant() ? nullptr : x_scale, {1.0f}};
    if (x_scale->is_constant() && !take_factor(matmul->output(), x_scale, n, scales)) continue;
    if (!take_factor(matmul->output(), matmul->inputs[linear_q::w_scale], n, scales)) continue;
    if (!take_factor(matmul->output(), mul.inputs[1 - i], n, scales)) continue;
    std::vector<ir::Value*> operands = matmul->inputs;
    if (scales.computed)
      operands[linear_q::x_scale] = scales.computed;
    else
      operands[linear_q::x_scale] = g.add_constant("one", ir::Tensor::scalar(1.0f));
    ir::Sizes shape;
    if (scales.constant.size() > 1) shape = {n.constant()};
    operands[linear_q::w_scale] = g.add_constant(operands[linear_q::w]->name + ".scale",
                                                 ir::Tensor::of(shape, std::move(scales.constant)));
    replace(g, &mul, {matmul, &mul}, linear_q::op, operands, matmul->attributes);
    return true;
  }
  return false;
}

bool take_bias(ir::Graph& g, ir::Node& add) {
  for (const std::size_t i : {0u, 1u}) {
    ir::Node* matmul = open_matmul(g, add.inputs[i]);
    ir::Value* bias = add.inputs[1 - i];
    if (!matmul || add.output()->type != matmul->output()->type) continue;
    const ir::Dim n = matmul->output()->type.shape.back();
    if (!is_column_constant(bias, n) || bias->type.dtype != ir::DType::f32) continue;
    std::vector<ir::Value*> operands = matmul->inputs;
    operands[linear_q::bias] = as_vector(g, bias);
    replace(g, &add, {matmul, &add}, linear_q::op, operands, matmul->attributes);
    return true;
  }
  return false;
}

bool find_linear_q_at(ir::Graph& g, ir::Node& node) {
  if (node.op == "Cast") return start(g, node);
  if (node.op == "Mul") return take_scale(g, node);
  if (node.op == "Add") return take_bias(g, node);
  return false;
}

}  // namespace

Pass find_linear_q() { return rewriting("find_linear_q", find_linear_q_at); }

}  // namespace bertcl::passes
