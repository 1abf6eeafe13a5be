// SPDX-License-Identifier: Apache-2.0
// The heads of attention in their many spellings.
#include "passes/recognize/attention_heads.hpp"

#include <algorithm>
#include <cmath>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/node_queries.hpp"
#include "passes/quant_params.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// True if `v` holds the columns of `*x` from `first` on, half of them; a null x is set.
bool is_half_of(const ir::Value* v, bool second, ir::Value** x) {
  const ir::Node* n = v->producer;
  if (!n || (n->op != "Slice" && n->op != "Split")) return false;
  ir::Value* whole = n->inputs[0];
  if (*x && *x != whole) return false;
  *x = whole;
  const ir::Dim size = whole->type.shape.back(), half = v->type.shape.back();
  if (!size.is_constant() || !half.is_constant() || 2 * half.constant() != size.constant())
    return false;
  if (n->op == "Split")
    return ops::is_last_axis(*n, 0, whole->type.shape) && n->outputs.size() == 2 &&
           n->outputs[second] == v;
  const auto last = std::ssize(whole->type.shape) - 1;
  const auto axis = only_integer(*n, "axes", 3), start = only_integer(*n, "starts", 1);
  if (!axis || !start || (*axis != -1 && *axis != last)) return false;
  if ((n->has("steps") || n->input(4)) && only_integer(*n, "steps", 4) != 1) return false;
  return *start == (second ? half.constant() : 0) || (second && *start == -half.constant());
}

/// The shape in four axes, as it is broadcast.
ir::Shape in_four_axes(ir::Shape shape) {
  if (shape.size() < 4) shape.insert(shape.begin(), 4 - shape.size(), ir::Dim(1));
  return shape;
}

/// Takes r.cos and r.sin for tables of r.x, if they are.
bool match_tables(Rotation& r) {
  const ir::Shape &x = r.x->type.shape, shape = in_four_axes(r.cos->type.shape);
  if (shape != in_four_axes(r.sin->type.shape)) return false;
  for (const ir::Value* table : {r.cos, r.sin})
    if (table->type.dtype != ir::DType::f32 || table->type.shape.size() < 2) return false;
  const ir::Dim one(1);
  if (shape.size() != 4 || (shape[0] != one && shape[0] != x[0])) return false;
  r.rows_first = shape == ir::Shape{shape[0], x[1], one, x[3]};
  return r.rows_first || shape == ir::Shape{shape[0], one, x[2], x[3]};
}

/// True for a norm of the last of four axes.
bool normalizes_heads(const ir::Node& n) {
  return (n.op == "LayerNormalization" || n.op == "RMSNormalization") &&
         n.output()->type.shape.size() == 4 && normalizes_last_axis(n);
}

/// Moves a factor of heads into the scale of the scores. One that is quantized with them divides
/// the scale of that and must be positive; if it is not a power of two, a result next to a rounding
/// tie may change, as in fold_channel_factor.
bool take_factor(HeadsOperand& heads, double factor) {
  heads.scale *= factor;
  if (!heads.quantize) return true;
  heads.quantized_factor *= factor;
  const double step = *scalar_value(heads.quantize->inputs[1]) / heads.quantized_factor;
  return heads.quantized_factor > 0 && std::isnormal(static_cast<float>(step));
}

/// A table of a rotation as [.., seq, size], which all layers share.
ir::Value* table_of(ir::Graph& g, ir::Value* v, bool rows_first, ir::Node* before) {
  if (!rows_first) return v;
  const ir::Node* n = v->producer;
  if (n && n->op == "Transpose" && n->ints_attribute("perm") == Permutation{0, 2, 1, 3})
    return n->inputs[0];
  const ir::Shape rows = in_four_axes(v->type.shape);  // [1 | batch, seq, 1, size]
  const ir::Type type{v->type.dtype, {rows[0], rows[2], rows[1], rows[3]}};
  for (const ir::Node* user : v->users)
    if (user->op == "Reshape" && user->output()->type == type && comes_before(g, user, before))
      return user->output();
  return g.add("Reshape", {v}, {}, type, before);
}

/// The rows whose heads are normalized apart.
ir::Value* normalize_heads(ir::Graph& g, const HeadsOperand& heads, ir::Node* before) {
  const ir::Type rows = heads.hidden->type;
  const ir::Type apart{rows.dtype, {rows.shape[0], rows.shape[1], heads.count, heads.size}};
  std::vector<ir::Value*> operands = heads.norm->inputs;
  operands[0] = g.add("Reshape", {heads.hidden}, {}, apart, before);
  ir::Attributes attributes = heads.norm->attributes;
  attributes["axis"] = -1;
  ir::Value* v = g.add(heads.norm->op, operands, std::move(attributes), apart, before);
  v->producer->sources = heads.norm->sources;
  return g.add("Reshape", {v}, {}, rows, before);
}

}  // namespace

std::optional<Rotation> match_rotation(ir::Node& add, std::vector<ir::Node*>& nodes) {
  if (add.op != "Add" || add.output()->type.shape.size() != 4) return std::nullopt;
  for (const int i : {0, 1}) {
    ir::Node *direct = add.inputs[i]->producer, *turned = add.inputs[1 - i]->producer;
    if (!direct || !turned || direct->op != "Mul" || turned->op != "Mul") continue;
    for (const int j : {0, 1}) {
      ir::Node* concat = turned->inputs[j]->producer;
      if (!concat || concat->op != "Concat" || concat->inputs.size() != 2) continue;
      ir::Node* neg = concat->inputs[0]->producer;
      Rotation r;
      if (!ops::is_last_axis(*concat, 0, concat->output()->type.shape) || !neg || neg->op != "Neg")
        continue;
      if (!is_half_of(neg->inputs[0], true, &r.x) || !is_half_of(concat->inputs[1], false, &r.x))
        continue;
      const int k = direct->inputs[0] == r.x ? 0 : 1;
      if (direct->inputs[k] != r.x) continue;
      r.cos = direct->inputs[1 - k];
      r.sin = turned->inputs[1 - j];
      if (!match_tables(r)) continue;
      nodes.insert(nodes.end(), {direct, turned, concat, neg, neg->inputs[0]->producer,
                                 concat->inputs[1]->producer});
      return r;
    }
  }
  return std::nullopt;
}

ir::Node* pair_of(const ir::Node* dq) {
  if (!dq || dq->op != "DequantizeLinear" || !is_per_tensor(*dq)) return nullptr;
  ir::Node* q = dq->inputs[0]->producer;
  if (!q || q->op != "QuantizeLinear" || !ir::is_int8(q->output()->type.dtype)) return nullptr;
  return same_parameters(*q, *dq) ? q : nullptr;
}

std::optional<RepeatedHeads> repeated_heads(const ir::Value* v) {
  ir::Node* merge = v->producer;
  ir::Node* expand = merge && merge->op == "Reshape" ? merge->inputs[0]->producer : nullptr;
  ir::Node* spread = expand && expand->op == "Expand" ? expand->inputs[0]->producer : nullptr;
  if (!spread || (spread->op != "Reshape" && spread->op != "Unsqueeze")) return std::nullopt;
  ir::Value* x = spread->inputs[0];
  const ir::Shape &from = x->type.shape, &all = expand->output()->type.shape;
  if (from.size() != 4 || all.size() != 5 || !all[2].is_constant()) return std::nullopt;
  const std::int64_t times = all[2].constant();
  const auto apart = [&](std::int64_t n) {
    return ir::Shape{from[0], from[1], ir::Dim(n), from[2], from[3]};
  };
  if (expand->inputs[0]->type.shape != apart(1) || all != apart(times) ||
      v->type.shape != ir::Shape{from[0], from[1] * ir::Dim(times), from[2], from[3]})
    return std::nullopt;
  return RepeatedHeads{x, times, {merge, expand, spread}};
}

bool match_split_heads(ir::Value* v, const Permutation& wanted, HeadsOperand& heads,
                       std::vector<ir::Node*>& nodes) {
  const Permutation same{0, 1, 2, 3}, rows_of_heads{0, 2, 1, 3};
  Permutation perm = same, since_rotation = same, since_norm = same, since_repeat = same;
  while (ir::Node* n = v->producer) {
    nodes.push_back(n);
    if (n->op == "Transpose") {
      for (Permutation* p : {&perm, &since_rotation, &since_norm, &since_repeat})
        for (std::int64_t& axis : *p) axis = n->ints_attribute("perm").at(axis);
      v = n->inputs[0];
    } else if (const auto factor = heads.norm ? std::nullopt : scaled(*n)) {
      if (!take_factor(heads, factor->factor)) return false;
      v = factor->x;
    } else if (!heads.norm && normalizes_heads(*n)) {
      heads.norm = n;
      since_norm = same;
      v = n->inputs[0];
    } else if (const auto rotation = heads.has_steps() ? std::nullopt : match_rotation(*n, nodes)) {
      heads.rotation = rotation;
      since_rotation = same;
      v = rotation->x;
    } else if (ir::Node* q = heads.has_steps() ? nullptr : pair_of(n); q && !heads.quantize) {
      heads.quantize = q;
      nodes.push_back(q);
      v = q->inputs[0];
    } else if (const auto repeated = repeated_heads(v); repeated && heads.shared == 1) {
      heads.shared = repeated->times;
      since_repeat = same;
      nodes.insert(nodes.end(), repeated->nodes.begin() + 1, repeated->nodes.end());
      v = repeated->x;
    } else if (n->op == "Reshape") {
      if (heads.shared != 1 && since_repeat != rows_of_heads) return false;
      if (!heads.has_steps() && heads.quantize) return false;
      if (heads.norm && since_norm.back() != 3) return false;
      if (heads.rotation && since_rotation != (heads.rotation->rows_first ? same : rows_of_heads))
        return false;
      const ir::Shape& in = n->inputs[0]->type.shape;
      const ir::Shape& out = v->type.shape;
      if (perm != wanted || in.size() != 3 || out.size() != 4) return false;
      if (in[0] != out[0] || in[1] != out[1] || !out[2].is_constant() || !out[3].is_constant())
        return false;
      heads.hidden = n->inputs[0];
      heads.count = out[2];
      heads.size = out[3];
      return true;
    } else {
      return false;
    }
  }
  return false;
}

ir::Value* attention_operand(ir::Graph& g, const HeadsOperand& heads, ir::Node* before) {
  const ir::Type type = heads.hidden->type;
  ir::Value* v = heads.norm ? normalize_heads(g, heads, before) : heads.hidden;
  if (heads.rotation) {
    const Rotation& r = *heads.rotation;
    v = g.add(
        rotary::op,
        {v, table_of(g, r.cos, r.rows_first, before), table_of(g, r.sin, r.rows_first, before)},
        {{"heads", heads.count.constant()}}, type, before);
  }
  if (!heads.quantize || v == heads.hidden) return v;
  std::vector<ir::Value*> operands = heads.quantize->inputs;
  const ir::DType bytes = heads.quantize->output()->type.dtype;
  operands[0] = v;
  if (heads.quantized_factor != 1.0) {
    const ir::Tensor& scale = *operands[1]->constant;
    const auto step = static_cast<float>(scale.to_doubles()[0] / heads.quantized_factor);
    operands[1] = g.add_constant(
        operands[1]->name, ir::Tensor::of<float>(scale.shape(), {step}).converted(scale.dtype()));
  }
  operands[0] = g.add("QuantizeLinear", operands, {}, {bytes, type.shape}, before);
  return g.add("DequantizeLinear", operands, {}, type, before);
}

}  // namespace bertcl::passes
