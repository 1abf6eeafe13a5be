// SPDX-License-Identifier: Apache-2.0
// Q/DQ pairs on the heads of attention move up to the linear that makes them.
//
//   x -> Reshape -> Transpose -> [Mul c] -> Q(s) -> DQ(s) -> MatMul
//   becomes
//   x -> Q(s/c) -> DQ(s/c) -> Reshape -> Transpose -> [Mul c] -> MatMul
//
// Heads that are moved as bytes, as ONNX Runtime writes them, take that spelling first:
//
//   x -> Q -> Reshape -> Transpose -> bytes
//   becomes
//   x -> Reshape -> Transpose -> Q -> bytes
//
// A per-tensor scale does not care about the order of elements. Moving it past a factor divides the
// scale, which may change a result next to a rounding tie; where that gives the scale of another Q
// of x but for its rounding, x is quantized once.
#include <algorithm>
#include <ranges>

#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/recognize/attention_heads.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// True if `v` is x split into heads ([b,s,h] -> [b,s,n,d]) and then only permuted, scaled or
/// repeated.
bool comes_from_split_heads(ir::Value* v) {
  while (ir::Node* n = v->producer) {
    if (n->op == "Reshape" && n->inputs[0]->type.shape.size() == 3 && v->type.shape.size() == 4)
      return true;
    const auto factor = scaled(*n);
    if (const auto repeated = repeated_heads(v))
      v = repeated->x;
    else if (n->op == "Transpose")
      v = n->inputs[0];
    else if (factor)
      v = factor->x;
    else
      return false;
  }
  return false;
}

/// Q -> DQ on top of `dq`'s operand, with the scale divided by `factor`.
ir::Value* quantize_pair(ir::Graph& g, ir::Value* x, ir::Node& q, ir::Node& dq, double factor) {
  ir::Value* scale = q.inputs[1];
  if (factor != 1.0) {
    const auto s = static_cast<float>(*scalar_value(scale) / factor);
    scale = g.add_constant(scale->name, ir::Tensor::scalar(s));
  }
  ir::Type quantized{q.output()->type.dtype, x->type.shape};
  std::vector<ir::Value*> operands{x, scale};
  if (q.input(2)) operands.push_back(q.input(2));
  operands[0] = add_like(g, q, operands, quantized, &q, x->name + ".quantized");
  return add_like(g, dq, operands, x->type, &q, x->name + ".dequantized");
}

/// Quantizes after a Reshape or Transpose of heads instead of in front of it.
bool quantize_after(ir::Graph& g, ir::Node& mover) {
  if (mover.op != "Reshape" && mover.op != "Transpose") return false;
  const ir::Value* bytes = mover.inputs[0];
  const ir::Shape& shape = mover.output()->type.shape;
  ir::Node* q = bytes->producer;
  if (!q || q->op != "QuantizeLinear" || !is_per_tensor(*q) || !g.used_once(bytes)) return false;
  if (bytes->type.shape.size() != 4 && shape.size() != 4) return false;
  std::vector<ir::Value*> operands = mover.inputs;
  operands[0] = q->inputs[0];
  ir::Value* moved = add_like(g, mover, operands, {q->inputs[0]->type.dtype, shape}, &mover,
                              bytes->name + ".moved");
  operands = q->inputs;
  operands[0] = moved;
  replace(g, &mover, {q}, "QuantizeLinear", operands, q->attributes);
  return true;
}

/// Takes the scale of another Q of the same value if it is the same but for its rounding: keys that
/// are divided by a constant for one MatMul and not for another.
bool share_scale(ir::Graph& g, ir::Node& q, ir::Node& dq) {
  if (!g.used_once(q.output())) return false;
  const double scale = *scalar_value(q.inputs[1]);
  for (const ir::Node* other : q.inputs[0]->users) {
    if (other->op != "QuantizeLinear" || !is_per_tensor(*other) ||
        other->output()->type != q.output()->type ||
        zero_point_of(other->input(2)) != zero_point_of(q.input(2)))
      continue;
    const double found = *scalar_value(other->inputs[1]);
    // To larger ones alone: several such scales would be exchanged for ever.
    if (!(found > scale) || !(found - scale <= 4e-7 * scale)) continue;
    g.set_input(&q, 1, other->inputs[1]);
    g.set_input(&dq, 1, other->inputs[1]);
    return true;
  }
  return false;
}

bool lift_quantize_at(ir::Graph& g, ir::Node& dq) {
  if (quantize_after(g, dq)) return true;
  if (dq.op != "DequantizeLinear" || !is_per_tensor(dq)) return false;
  ir::Node* q = dq.inputs[0]->producer;
  if (!q || q->op != "QuantizeLinear" || !is_per_tensor(*q) || !same_parameters(*q, dq))
    return false;
  if (share_scale(g, *q, dq)) return true;
  ir::Value* v = q->inputs[0];
  if (!comes_from_split_heads(v)) return false;
  std::vector<ir::Node*> movers{v->producer};  // from the last up

  ir::Value* x = movers[0]->inputs[0];
  double factor = 1.0;
  if (const auto repeated = repeated_heads(v)) {
    movers = repeated->nodes;
    x = repeated->x;
  } else if (const auto found = scaled(*movers[0])) {
    if (!(found->factor > 0)) return false;
    x = found->x;
    factor = found->factor;
  }
  ir::Value* result = quantize_pair(g, x, *q, dq, factor);
  for (ir::Node* mover : std::views::reverse(movers)) {
    std::vector<ir::Value*> operands = mover->inputs;
    std::ranges::replace(operands, x, result);
    x = mover->output();
    result = add_like(g, *mover, operands, x->type, q);
  }
  g.replace_uses(dq.output(), result);
  return true;
}

}  // namespace

Pass lift_quantize() { return rewriting("lift_quantize", lift_quantize_at); }

}  // namespace bertcl::passes
