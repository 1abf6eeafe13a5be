// SPDX-License-Identifier: Apache-2.0
// Scores of relative positions that are added to those of attention (disentangled attention, He et
// al., 2021):
//
//   heads [batch, heads, seq, size] -> MatMul(positions [heads, size, count])
//     -> GatherElements(index [seq, seq], repeated) -> [Transpose(0,1,3,2)] -> [* scale]
//   becomes
//   position_scores(x, positions, index, addend) {heads, scale, of_keys?}
//
// The heads are queries, or where the scores are transposed, keys. Where both factors of the MatMul
// are dequantized, their bytes are the operands.
#pragma once
#include "passes/recognize/attention_heads.hpp"

namespace bertcl::passes {

struct PositionTerm {
  HeadsOperand heads;
  ir::Value* positions = nullptr;  // constant [heads, size, count], perhaps dequantized
  ir::Value* index = nullptr;      // [1, .., seq, seq]
  bool of_keys = false;
  double scale = 1.0;
  std::vector<ir::Node*> nodes;
};

/// The term whose result `v` [batch, heads, seq, seq] is; empty if it is none.
std::optional<PositionTerm> match_position_term(ir::Value* v);

/// The sum of the terms, in nodes before `before`; null if there is none.
ir::Value* add_position_scores(ir::Graph& g, const std::vector<PositionTerm>& terms,
                               ir::Node* before);

}  // namespace bertcl::passes
