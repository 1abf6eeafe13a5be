// SPDX-License-Identifier: Apache-2.0
// Operators whose results for real tokens depend on rows of padding.
#pragma once
#include <set>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// The first operator, besides the nodes of `attention`, that mixes tokens of the values `changed`
/// [batch, seq, ...] or of what is made of them, without the mask; null if there is none. What a
/// value made of `mask` [batch, seq] alone is multiplied with, added to or selected by counts as
/// masked, and so does what that is multiplied with. No mask: null.
const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask, const ir::Dim& seq,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention);

}  // namespace bertcl::passes
