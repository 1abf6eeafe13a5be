// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul takes the spelling of the other integer MatMuls.
//
//   QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero) -> y
//   becomes
//   MatMulInteger(a, b, a_zero, b_zero) -> Cast -> Mul(a_scale * b_scale)
//     -> Q(y_scale, y_zero) -> y
//
// A MatMul of two computed operands by head (four axes) takes the spelling with DequantizeLinear,
// in which attention is recognized:
//
//   DQ(a, a_scale, a_zero), DQ(b, b_scale, b_zero) -> MatMul -> Q(y_scale, y_zero) -> y
//
// Dividing by y_scale at the end instead of multiplying by a_scale * b_scale / y_scale may change a
// result next to a rounding tie.
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// `v` under another shape of as many elements, put in front of `before`.
ir::Value* reshaped(ir::Graph& g, ir::Value* v, ir::Shape shape, ir::Node* before) {
  if (v->type.shape == shape) return v;
  if (v->is_constant())
    if (const auto sizes = ir::constant_shape(shape))
      return g.add_constant(v->name, v->constant->reshaped(*sizes));
  return g.add("Reshape", {v}, {}, {v->type.dtype, shape}, before);
}

/// False if the operands are not heads.
bool rewrite_matmul_of_heads(ir::Graph& g, ir::Node& node) {
  const auto& in = node.inputs;
  for (const std::size_t x : {0u, 3u})
    if (in[x]->is_constant() || in[x]->type.shape.size() != 4) return false;
  for (const std::size_t parameter : {1u, 2u, 4u, 5u, 6u, 7u})
    if (!scalar_value(in[parameter])) return false;
  const auto scalar = [&](std::size_t i) { return reshaped(g, in[i], {}, &node); };
  std::vector<ir::Value*> real;
  for (const std::size_t x : {0u, 3u}) {
    real.push_back(g.add("DequantizeLinear", {in[x], scalar(x + 1), scalar(x + 2)}, {},
                         {ir::DType::f32, in[x]->type.shape}, &node, in[x]->name + ".real"));
    real.back()->producer->sources = node.sources;
  }
  ir::Value* matmul = g.add("MatMul", real, {}, {ir::DType::f32, node.output()->type.shape}, &node,
                            node.output()->name + ".real");
  matmul->producer->sources = node.sources;
  replace(g, &node, {&node}, "QuantizeLinear", {matmul, scalar(6), scalar(7)});
  return true;
}

bool split_qlinear_matmul_at(ir::Graph& g, ir::Node& node) {
  if (node.op != "QLinearMatMul") return false;
  if (rewrite_matmul_of_heads(g, node)) return true;
  const auto& in = node.inputs;
  const ir::Shape& a = in[0]->type.shape;
  const ir::Shape& b = in[3]->type.shape;
  ir::Value *a_scale = in[1], *b_scale = in[4];
  if (!is_scalar(in[6]) || !is_scalar(in[7])) return false;
  // One scale for all, one for each row of a, or one for each column of b.
  if (is_scalar(a_scale))
    a_scale = reshaped(g, a_scale, {}, &node);
  else if (a_scale->type.shape.size() == 1 && a.size() > 1 && b.size() > 1)
    a_scale = reshaped(g, a_scale, {a[a.size() - 2], ir::Dim(1)}, &node);
  else
    return false;
  if (is_scalar(b_scale))
    b_scale = reshaped(g, b_scale, {}, &node);
  else if (b_scale->type.shape.size() != 1 || b.size() < 2)
    return false;
  const ir::Shape& shape = node.output()->type.shape;
  const std::string& name = node.output()->name;
  ir::Value* sums = g.add("MatMulInteger", {in[0], in[3], in[2], in[5]}, {},
                          {ir::DType::i32, shape}, &node, name + ".sums");
  ir::Value* numbers = g.add("Cast", {sums}, {{"to", std::string(ir::name_of(ir::DType::f32))}},
                             {ir::DType::f32, shape}, &node, name + ".numbers");
  ir::Value* half = g.add("Mul", {numbers, a_scale}, {}, {ir::DType::f32, shape}, &node);
  ir::Value* real = g.add("Mul", {half, b_scale}, {}, {ir::DType::f32, shape}, &node);
  for (const ir::Value* v : {sums, numbers, half, real}) v->producer->sources = node.sources;
  replace(g, &node, {&node}, "QuantizeLinear",
          {real, reshaped(g, in[6], {}, &node), reshaped(g, in[7], {}, &node)});
  return true;
}

}  // namespace

Pass split_qlinear_matmul() { return rewriting("split_qlinear_matmul", split_qlinear_matmul_at); }

}  // namespace bertcl::passes
