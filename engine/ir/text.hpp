// SPDX-License-Identifier: Apache-2.0
// The text form of a graph, compared by tests and shown by `inspect --dump-passes`.
//
//   graph bert(%input_ids: i64[batch, seq]) {
//     const %table: f32[30522, 384] = ...
//     const %axis: i64[] = 1
//     %0: f32[batch, seq, 384] = Gather(%table, %input_ids) {axis = 0}
//     %1: f32[2], %2: f32[2] = Split(%x) {axis = -1}
//     return %0 as start_logits
//   }
#pragma once
#include <string>
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::ir {

struct PrintOptions {
  std::int64_t max_elements = 8;  // constants with more elements are printed as "..."
  bool renumber = false;  // %0, %1, ... for the results of nodes, so that two graphs compare
};

/// One line per input, constant and node, in topological order.
std::string print(const Graph& graph, const PrintOptions& options = {});

/// Checks SSA form, topological order, use lists and the shapes of constants. Throws bertcl::Error
/// that names the first violation; `where` says after which pass.
void verify(const Graph& graph, std::string_view where = {});

}  // namespace bertcl::ir
