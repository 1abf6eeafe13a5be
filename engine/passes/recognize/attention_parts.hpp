// SPDX-License-Identifier: Apache-2.0
// What stands between the scores of attention and their softmax, in its many spellings.
#pragma once
#include <optional>
#include <vector>

#include "ops/recognize_by_value.hpp"
#include "passes/recognize/attention_positions.hpp"

namespace bertcl::passes {

/// What stands between the scores and the softmax.
struct ScoreTerms {
  std::optional<ops::KeyMask> mask;  // without its reach
  ops::AttentionSpan span;
  ir::Value* bias = nullptr;  // [1, heads | 1, seq, seq]
  std::vector<PositionTerm> positions;
};

/// Takes masks, bias and scores of positions off `v`, the operand of Softmax, in sums or a Where.
/// Returns the scores under them, null if anything else is added; `nodes` get what was taken.
ir::Value* strip_terms(const ir::Graph& g, ir::Value* v, ScoreTerms& terms,
                       std::vector<ir::Node*>& nodes);

/// What is added to the scores as the operand `bias` of attention, in nodes before `before`; null
/// if that is nothing. `causal`: the bias of causal attention, made for the first.
ir::Value* add_bias(ir::Graph& g, const ScoreTerms& terms, const ir::Dim& seq, ir::Value*& causal,
                    ir::Node* before);

}  // namespace bertcl::passes
