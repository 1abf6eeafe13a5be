// SPDX-License-Identifier: Apache-2.0
// What stands between the scores of attention and their softmax, in its many spellings.
#include "passes/recognize/attention_parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "passes/node_queries.hpp"

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

/// A key must be within all of them.
void take_span(const ops::AttentionSpan& span, ScoreTerms& terms) {
  ops::AttentionSpan& r = terms.span;
  r.causal = r.causal || span.causal;
  if (r.window == 0 || (span.window != 0 && span.window < r.window)) r.window = span.window;
}

void take_mask(ops::KeyMask mask, ScoreTerms& terms) {
  take_span(std::exchange(mask.span, {}), terms);
  terms.mask = mask;
}

/// True if `v` says, for scores of that shape, of every row and key whether they count.
bool has_places_of(const ir::Value* v, const ir::Shape& scores) {
  const ir::Shape& shape = v->type.shape;
  return scores.size() == 4 && shape.size() >= 2 &&
         std::equal(shape.end() - 2, shape.end(), scores.end() - 2);
}

/// The operand of `where` that a mask keeps, scores or a term of theirs; else null.
ir::Value* strip_where(const ir::Graph& g, const ir::Node& where, ScoreTerms& terms) {
  const bool has_places = has_places_of(where.inputs[0], where.output()->type.shape);
  for (const int i : {1, 2}) {
    const auto filling = scalar_value(where.inputs[3 - i]);
    if (!filling || *filling > -1e4) continue;
    const auto span = has_places ? ops::boolean_span(g, where.inputs[0], /*keeps=*/i == 1)
                                 : std::optional<ops::AttentionSpan>{};
    if (span) {
      take_span(*span, terms);
      return where.inputs[i];
    }
    if (terms.mask) continue;
    if (const auto mask = ops::boolean_key_mask(g, where.inputs[0], /*keeps=*/i == 1)) {
      take_mask(*mask, terms);
      return where.inputs[i];
    }
  }
  return nullptr;
}

/// True if `v`, added to scores of that shape, is a mask, a bias, scores of positions, zero, a sum
/// of these, or such a term where a mask selects it, as in torch's operand of sdpa.
bool take_score_term(const ir::Graph& g, ir::Value* v, const ir::Shape& scores, ScoreTerms& terms) {
  const auto span =
      has_places_of(v, scores) ? ops::additive_span(g, v) : std::optional<ops::AttentionSpan>{};
  if (span) {
    take_span(*span, terms);
    return true;
  }
  if (ops::is_all_zero(g, v)) return true;  // for images, all patches count
  if (v->is_constant() && v->type.shape.size() != 4) return false;
  if (!terms.bias)
    if (ir::Value* bias = bias_of_sizes(v, scores)) {
      terms.bias = bias;
      return true;
    }
  if (!terms.mask && !v->is_constant())
    if (const auto mask = ops::additive_key_mask(g, v)) {
      take_mask(*mask, terms);
      return true;
    }
  if (const auto term =
          v->type.shape == scores ? match_position_term(v) : std::optional<PositionTerm>{}) {
    terms.positions.push_back(*term);
    return true;
  }
  const ir::Node* n = v->producer;
  if (n && n->op == "Where") {
    ir::Value* term = strip_where(g, *n, terms);
    return term && take_score_term(g, term, scores, terms);
  }
  return n && n->op == "Add" && take_score_term(g, n->inputs[0], scores, terms) &&
         take_score_term(g, n->inputs[1], scores, terms);
}

/// 0 for the keys up to the row, and the lowest number for those after it, [1, 1, seq, seq].
ir::Value* causal_bias(ir::Graph& g, const ir::Dim& seq, ir::Node* before) {
  const auto add = [&](std::string op, std::vector<ir::Value*> operands, ir::DType type,
                       ir::Shape shape, ir::Attributes attributes = {}) {
    return g.add(std::move(op), std::move(operands), std::move(attributes),
                 {type, std::move(shape)}, before);
  };
  const auto number = [&](float x) {
    return g.add_constant("causal", ir::Tensor::of<float>({}, {x}));
  };
  const ir::Dim one(1);
  ir::Value* at = add("Range", {}, ir::DType::i64, {seq}, {{"start", 0}, {"step", 1}});
  ir::Value* key = add("Reshape", {at}, ir::DType::i64, {one, one, one, seq});
  ir::Value* row = add("Reshape", {at}, ir::DType::i64, {one, one, seq, one});
  ir::Value* counts = add("LessOrEqual", {key, row}, ir::DType::boolean, {one, one, seq, seq});
  return add("Where", {counts, number(0.0f), number(std::numeric_limits<float>::lowest())},
             ir::DType::f32, {one, one, seq, seq});
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
    } else if (n->op == "Where") {
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

ir::Value* add_bias(ir::Graph& g, const ScoreTerms& terms, const ir::Dim& seq, ir::Value*& causal,
                    ir::Node* before) {
  ir::Value* bias = add_position_scores(g, terms.positions, before);
  if (!bias) bias = terms.bias;
  if (!terms.span.causal) return bias;
  // At the front of the graph: all attention reads it.
  if (!causal) causal = causal_bias(g, seq, g.nodes().front().get());
  return bias ? g.add("Add", {bias, causal}, {}, bias->type, before) : causal;
}

}  // namespace bertcl::passes
