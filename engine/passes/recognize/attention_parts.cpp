// SPDX-License-Identifier: Apache-2.0
// Parts of attention that come in many spellings.
#include "passes/recognize/attention_parts.hpp"

#include <algorithm>

#include "passes/match.hpp"

namespace bertcl::passes {
namespace {

/// `v` as [1, heads | 1, seq, seq] if it is a float tensor made of sizes and constants alone, also
/// where it is repeated for the batch; null otherwise.
ir::Value* bias_of_sizes(ir::Value* v, const ir::Shape& scores) {
  while (v->producer && v->producer->op == "Expand" &&
         v->producer->inputs[0]->type.shape.size() == 4)
    v = v->producer->inputs[0];
  const ir::Shape& shape = v->type.shape;
  if (shape.size() != 4 || scores.size() != 4 || v->type.dtype != ir::DType::f32) return nullptr;
  if (shape[0] != ir::Dim(1) || shape[2] != scores[2] || shape[3] != scores[3]) return nullptr;
  if (scores[2] != scores[3] || (shape[1] != scores[1] && shape[1] != ir::Dim(1))) return nullptr;
  return ops::depends_on_sizes_only(v) ? v : nullptr;
}

/// True if `v`, added to scores of that shape, is a mask, a bias, or the sum of both.
bool take_score_term(const ir::Graph& g, ir::Value* v, const ir::Shape& scores, ScoreTerms& terms) {
  if (v->is_constant() && v->type.shape.size() != 4) return false;
  if (!terms.bias)
    if (ir::Value* bias = bias_of_sizes(v, scores)) {
      terms.bias = bias;
      return true;
    }
  if (!terms.mask && !v->is_constant())
    if (const auto mask = ops::additive_key_mask(g, v)) {
      terms.mask = mask;
      return true;
    }
  const ir::Node* sum = v->producer;
  return sum && sum->op == "Add" && take_score_term(g, sum->inputs[0], scores, terms) &&
         take_score_term(g, sum->inputs[1], scores, terms);
}

/// The scores where a mask selects them, null if the condition is another one.
ir::Value* strip_where(const ir::Graph& g, const ir::Node& where, ScoreTerms& terms) {
  for (const int i : {1, 2}) {
    const auto filling = scalar_value(where.inputs[3 - i]);
    if (!filling || *filling > -1e4) continue;
    if (const auto mask = ops::boolean_key_mask(g, where.inputs[0], /*keeps=*/i == 1)) {
      terms.mask = mask;
      return where.inputs[i];
    }
  }
  return nullptr;
}

/// The only element of an attribute or of a constant operand.
std::optional<std::int64_t> only_integer(const ir::Node& n, std::string_view key,
                                         std::size_t operand) {
  if (n.has(key)) {
    const auto& all = n.ints_attribute(key);
    return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
  }
  const auto value = n.input(operand) ? scalar_value(n.input(operand)) : std::nullopt;
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

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
  const auto last = static_cast<std::int64_t>(whole->type.shape.size()) - 1;
  if (n->op == "Split") {
    const std::int64_t axis = n->int_attribute("axis", 0);
    return (axis == -1 || axis == last) && n->outputs.size() == 2 && n->outputs[second] == v;
  }
  const auto axis = only_integer(*n, "axes", 3), start = only_integer(*n, "starts", 1);
  if (!axis || !start || (*axis != -1 && *axis != last)) return false;
  if ((n->has("steps") || n->input(4)) && only_integer(*n, "steps", 4) != 1) return false;
  return *start == (second ? half.constant() : 0) || (second && *start == -half.constant());
}

/// True for [1, .., seq, size] of sizes and constants alone.
bool is_rotary_table(ir::Value* v, const ir::Shape& x) {
  const ir::Shape& shape = v->type.shape;
  if (v->type.dtype != ir::DType::f32 || shape.size() < 2 || shape.size() > x.size()) return false;
  if (shape.back() != x.back() || shape[shape.size() - 2] != x[x.size() - 2]) return false;
  return std::all_of(shape.begin(), shape.end() - 2,
                     [](const ir::Dim& d) { return d == ir::Dim(1); }) &&
         ops::depends_on_sizes_only(v);
}

}  // namespace

ir::Value* strip_terms(const ir::Graph& g, ir::Value* v, ScoreTerms& terms,
                       std::vector<ir::Node*>& nodes) {
  while (ir::Node* n = v->producer) {
    ir::Value* under = nullptr;
    if (n->op == "Add") {
      for (const int i : {1, 0}) {
        ScoreTerms more = terms;
        if (under || !take_score_term(g, n->inputs[i], v->type.shape, more)) continue;
        terms = more;
        under = n->inputs[1 - i];
      }
    } else if (n->op == "Where" && !terms.mask) {
      under = strip_where(g, *n, terms);
    } else {
      return v;
    }
    if (!under) return nullptr;
    nodes.push_back(n);
    v = under;
  }
  return nullptr;
}

std::optional<Rotation> match_rotation(ir::Node& add, std::vector<ir::Node*>& nodes) {
  if (add.op != "Add" || add.output()->type.shape.size() != 4) return std::nullopt;
  for (const int i : {0, 1}) {
    ir::Node *direct = add.inputs[i]->producer, *turned = add.inputs[1 - i]->producer;
    if (!direct || !turned || direct->op != "Mul" || turned->op != "Mul") continue;
    for (const int j : {0, 1}) {
      ir::Node* concat = turned->inputs[j]->producer;
      if (!concat || concat->op != "Concat" || concat->inputs.size() != 2) continue;
      const std::int64_t axis = concat->int_attribute("axis", 0);
      ir::Node* neg = concat->inputs[0]->producer;
      Rotation r;
      if ((axis != -1 && axis != 3) || !neg || neg->op != "Neg") continue;
      if (!is_half_of(neg->inputs[0], true, &r.x) || !is_half_of(concat->inputs[1], false, &r.x))
        continue;
      const int k = direct->inputs[0] == r.x ? 0 : 1;
      if (direct->inputs[k] != r.x) continue;
      r.cos = direct->inputs[1 - k];
      r.sin = turned->inputs[1 - j];
      const ir::Shape& shape = r.x->type.shape;
      if (!is_rotary_table(r.cos, shape) || !is_rotary_table(r.sin, shape)) continue;
      nodes.insert(nodes.end(), {direct, turned, concat, neg, neg->inputs[0]->producer,
                                 concat->inputs[1]->producer});
      return r;
    }
  }
  return std::nullopt;
}

}  // namespace bertcl::passes
