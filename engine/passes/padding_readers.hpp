// SPDX-License-Identifier: Apache-2.0
// Operators whose results for real tokens depend on rows of padding.
#pragma once
#include <set>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// The first operator, besides the nodes of `attention`, that combines tokens of the values
/// `changed` [batch, seq, ...] or of what is made of them, without the mask, takes them by their
/// numbers, but for the first, or rearranges them so that they cannot be followed; null if there is
/// none. What a value made of `mask` [batch, seq] alone is multiplied with, added to or selected by
/// counts as masked along the axes of the mask, and so does what that is multiplied with. No mask:
/// null.
const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention);

}  // namespace bertcl::passes
