// SPDX-License-Identifier: Apache-2.0
// What stands between the scores of attention and their softmax, in its many spellings.
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

/// The operand of `where` that a key mask keeps, scores or a term of theirs; else null.
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

/// True if `v`, added to scores of that shape, is a mask, a bias, scores of positions, a sum of
/// these, or such a term where a mask selects it, as in torch's operand of sdpa.
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
  if (const auto term =
          v->type.shape == scores ? match_position_term(v) : std::optional<PositionTerm>{}) {
    terms.positions.push_back(*term);
    return true;
  }
  const ir::Node* n = v->producer;
  if (n && n->op == "Where" && !terms.mask) {
    ir::Value* term = strip_where(g, *n, terms);
    return term && take_score_term(g, term, scores, terms);
  }
  return n && n->op == "Add" && take_score_term(g, n->inputs[0], scores, terms) &&
         take_score_term(g, n->inputs[1], scores, terms);
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

}  // namespace bertcl::passes
