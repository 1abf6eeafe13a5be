// SPDX-License-Identifier: Apache-2.0
// Recognizes subgraphs by running them on the host with small inputs.
//
// Exporters spell a key mask or the numbers 0..seq-1 in dozens of ways (Cast, Sub, Mul -10000,
// finfo.min, Where, Expand, Range, GreaterOrEqual, GatherND, ...). Only the result matters.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// Sequences with which to try what `nodes` compute, the longest first: short ones, one for which
/// every place the nodes name makes a difference, and all of each table they read. Those that are
/// longer than 4 may be too long for the graph. Empty if more than `longest` are needed.
std::optional<std::vector<std::int64_t>> seqs_to_try(const std::set<const ir::Node*>& nodes,
                                                     std::int64_t longest);

/// How a graph interprets its input attention_mask, 1 for a token and 0 for padding.
struct KeyMask {
  ir::Value* input;
  /// The first keys count, as many as the row has ones, wherever these are. Equivalent to the mask
  /// itself if its ones come first.
  bool mask_is_length = false;
  /// Keys at most so many places from the row count; 0: all.
  std::int64_t window = 0;
  /// Rows of padding have no keys.
  bool masks_rows = false;
  /// Keys after the row do not count.
  bool causal = false;

  friend bool operator==(const KeyMask&, const KeyMask&) = default;
};

/// If `value` is a float mask that is 0 where a key counts and at most -9999 where it does not,
/// made of one graph input [batch, seq] alone and broadcast over heads and query rows
/// ([batch, 1 | heads, 1 | seq, seq]): that graph input. Otherwise empty, also where the input
/// holds indices of a Gather.
std::optional<KeyMask> additive_key_mask(const ir::Graph& graph, ir::Value* value);

/// The same for a boolean mask that is true where a key counts (`keeps`) or where it does not.
std::optional<KeyMask> boolean_key_mask(const ir::Graph& graph, ir::Value* value, bool keeps);

/// True if `value` is a float mask [.., seq, seq], made of sizes and constants alone, that is 0 for
/// the keys up to the row and at most -9999 for those after it.
bool is_additive_causal_mask(const ir::Graph& graph, ir::Value* value);

/// The same for a boolean mask that is true for the keys that count (`keeps`) or for the others.
bool is_boolean_causal_mask(const ir::Graph& graph, ir::Value* value, bool keeps);

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
