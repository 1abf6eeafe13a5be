// SPDX-License-Identifier: Apache-2.0
// Recognizes subgraphs by running them on the host with small inputs.
//
// Exporters spell a key mask or the numbers 0..seq-1 in dozens of ways (Cast, Sub, Mul -10000,
// finfo.min, Where, Expand, Range, GreaterOrEqual, GatherND, ...). Only the result matters.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph.hpp"
#include "ir/tensor.hpp"

namespace bertcl::ops {

/// The part of a graph that computes a value.
struct Subgraph {
  std::vector<ir::Node*> nodes;
  std::set<ir::Value*> inputs;  // of the graph, or results of nodes at the border
};
/// Ends at nodes that are `is_border`. Empty if it has more than `most` nodes: no mask has 400, an
/// encoder has.
std::optional<Subgraph> subgraph_of(ir::Value* value, std::size_t most = 400,
                                    const std::function<bool(const ir::Node&)>& is_border = {});

inline constexpr std::int64_t kTrialBatch = 2, kShortSeq = 4;
inline constexpr std::int64_t kMaxMaskSeq = 1024 + 3;  // of [seq, seq]: longer trials are slow

/// Sizes for the symbols of the graph's inputs, whose first axes are the batch and the sequence.
ir::Bindings trial_sizes(const ir::Graph& graph, std::int64_t seq);

/// Masks [batch, seq]: full rows, prefixes, holes, a first token that does not count; of sequences
/// after the second their numbers. No row is without any token: exporters differ in what they do
/// there. If `seq`, of trial_sizes(), is beyond kShortSeq, three: full rows, one token alone, and
/// holes after a first token that does not count.
std::vector<ir::Tensor> trial_masks(const ir::Sizes& shape, ir::DType dtype, std::int64_t seq);

/// Sequences with which to try what `nodes` compute, the longest first: short ones, one for which
/// every place the nodes name makes a difference, and all of each table they read. Those that are
/// longer than 4 may be too long for the graph. Empty if more than `longest` are needed.
std::optional<std::vector<std::int64_t>> seqs_to_try(const std::vector<ir::Node*>& nodes,
                                                     std::int64_t longest);

/// Keys that may count for a row of attention, both places in their sequence.
struct AttentionSpan {
  std::int64_t window = 0;  // at most that many places from the row; 0: all
  bool causal = false;      // none after the row

  bool contains(std::int64_t row, std::int64_t key) const {
    return (!causal || key <= row) && (window == 0 || std::abs(row - key) <= window);
  }
  friend bool operator==(const AttentionSpan&, const AttentionSpan&) = default;
};

/// How a graph interprets its input attention_mask, 1 for a token and 0 for padding.
struct KeyMask {
  ir::Value* input;
  /// The first keys count, as many as the row has ones, wherever these are. Equivalent to the mask
  /// itself if its ones come first.
  bool mask_is_length = false;
  /// Rows of padding have no keys.
  bool masks_rows = false;
  AttentionSpan span = {};

  friend bool operator==(const KeyMask&, const KeyMask&) = default;
};

/// If `value` is a float mask that is 0 where a key counts and at most -9999 where it does not,
/// made of one graph input [batch, seq] alone and broadcast over heads and query rows
/// ([batch, 1 | heads, 1 | seq, seq]): that graph input. Otherwise empty, also where the input
/// holds indices of a Gather.
std::optional<KeyMask> additive_key_mask(const ir::Graph& graph, ir::Value* value);

/// The same for a boolean mask that is true where a key counts (`keeps`) or where it does not.
std::optional<KeyMask> boolean_key_mask(const ir::Graph& graph, ir::Value* value, bool keeps);

/// If `value` is a float mask [.., seq, seq], made of sizes and constants alone, that is 0 for the
/// keys within a reach and at most -9999 for the others: that reach. Otherwise empty.
std::optional<AttentionSpan> additive_span(const ir::Graph& graph, ir::Value* value);

/// The same for a boolean mask that is true for the keys that count (`keeps`) or for the others.
std::optional<AttentionSpan> boolean_span(const ir::Graph& graph, ir::Value* value, bool keeps);

/// If `value` is [batch, seq, 1], 1 where a graph input [batch, seq] has a one and 0 where it has a
/// zero: that input. Otherwise null.
ir::Value* mask_of_rows(const ir::Graph& graph, ir::Value* value);

/// True if `value` is 0, 1, ..., seq-1 along its last axis for all inputs.
bool is_position_ids(const ir::Graph& graph, ir::Value* value);

/// True if the elements of `value` depend on the sizes of the inputs alone, or on nothing.
bool depends_on_sizes_only(ir::Value* value);

/// True if every element of `value` is 0 for all inputs.
bool is_all_zero(const ir::Graph& graph, ir::Value* value);

}  // namespace bertcl::ops
