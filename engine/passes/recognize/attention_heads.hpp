// SPDX-License-Identifier: Apache-2.0
// The heads of attention in their many spellings: rows split into heads, norms, factors, rotary
// positions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::passes {

inline constexpr std::int64_t kMaxHeadSize = 256;  // columns; HEAD_MAX of the attention kernels

using Permutation = std::vector<std::int64_t>;

/// x * cos + Concat(-x[half:], x[:half]) * sin.
struct Rotation {
  ir::Value *x = nullptr, *cos = nullptr, *sin = nullptr;
  bool rows_first = false;  // x is [batch, seq, heads, size]
};

/// The rotation that `add` is the end of, of x [batch, heads, seq, size] by tables [1 | batch, 1,
/// seq, size], or of x [batch, seq, heads, size] by tables [1 | batch, seq, 1, size]; empty if it
/// is none.
std::optional<Rotation> match_rotation(ir::Node& add, std::vector<ir::Node*>& nodes);

/// Heads of which each is repeated, side by side: x [batch, heads, seq, size] ->
/// [batch, heads, 1, seq, size] -> Expand [batch, heads, times, seq, size] -> Reshape.
struct RepeatedHeads {
  ir::Value* x;
  std::int64_t times;
  std::vector<ir::Node*> nodes;
};

/// What `v` [batch, heads * times, seq, size] repeats so; empty if it does not.
std::optional<RepeatedHeads> repeated_heads(const ir::Value* v);

/// One operand of the two MatMuls: where its heads come from.
struct HeadsOperand {
  ir::Value* hidden = nullptr;  // [batch, seq, hidden]
  ir::Dim count, size;
  std::int64_t shared = 1;  // by that many heads of queries
  double scale = 1.0;
  ir::Node* norm = nullptr;          // of each head: LayerNormalization or RMSNormalization
  std::optional<Rotation> rotation;  // after the norm
  ir::Node* quantize = nullptr;      // after both
  double quantized_factor = 1.0;     // of the scale, before `quantize`

  /// True if the rows of `hidden` are not those of attention yet.
  bool has_steps() const { return norm || rotation; }
};

/// The Q of a per-tensor, 8-bit Q -> DQ pair whose result is `dq`'s; null if it is none.
ir::Node* pair_of(const ir::Node* dq);

/// Takes factors, permutations and the splitting Reshape off `v`; the permutations must compose to
/// `wanted`. `nodes` get what was taken.
bool match_split_heads(ir::Value* v, const Permutation& wanted, HeadsOperand& heads,
                       std::vector<ir::Node*>& nodes);

/// An operand of attention [batch, seq, hidden], in nodes before `before`: the hidden values,
/// normalized, turned and quantized where their heads are.
ir::Value* attention_operand(ir::Graph& g, const HeadsOperand& heads, ir::Node* before);

}  // namespace bertcl::passes
