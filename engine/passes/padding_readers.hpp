// SPDX-License-Identifier: Apache-2.0
// Operators whose results for real tokens depend on rows of padding.
#pragma once
#include <set>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// The first operator outside `attention` whose results for real tokens may depend on rows of
/// padding of the values `changed` [batch, seq, ...]; null if there is none. It combines tokens
/// without the mask, or those at one place of several sequences, takes another token than the first
/// by its number, or rearranges tokens so that they cannot be followed. What is computed from
/// `mask` [batch, seq] alone (null: there is none) masks, along its own axes, what it multiplies if
/// it is 0 for padding, what it selects, and for Softmax and maxima what it is added to if it is at
/// most -9999 there; factors and terms mask only what stays finite where rows are zeros, as x / |x|
/// does not.
const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention);

}  // namespace bertcl::passes
