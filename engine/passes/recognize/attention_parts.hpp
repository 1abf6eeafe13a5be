// SPDX-License-Identifier: Apache-2.0
// Parts of attention that come in many spellings: what is added to the scores, and rotary
// positions.
#pragma once
#include <optional>
#include <vector>

#include "ops/recognize_by_value.hpp"

namespace bertcl::passes {

/// What stands between the scores and the softmax.
struct ScoreTerms {
  std::optional<ops::KeyMask> mask;
  ir::Value* bias = nullptr;  // [1, heads | 1, seq, seq]
};

/// Takes mask and bias off `v`, the operand of Softmax, in sums or a Where. Returns the scores
/// under them, null if anything else is added; `nodes` get what was taken.
ir::Value* strip_terms(const ir::Graph& g, ir::Value* v, ScoreTerms& terms,
                       std::vector<ir::Node*>& nodes);

/// x * cos + Concat(-x[half:], x[:half]) * sin.
struct Rotation {
  ir::Value *x = nullptr, *cos = nullptr, *sin = nullptr;
};

/// The rotation that `add` is the end of, of x [batch, heads, seq, size] by tables [.., seq, size]
/// that depend on sizes alone; empty if it is none.
std::optional<Rotation> match_rotation(ir::Node& add, std::vector<ir::Node*>& nodes);

}  // namespace bertcl::passes
