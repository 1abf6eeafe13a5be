// SPDX-License-Identifier: Apache-2.0
// Operators whose results for real tokens depend on rows of padding.
#pragma once
#include <set>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// True if elements of the result are made of several elements of operand 0 along an axis of
/// tokens: any whose size is a multiple of `seq`, or where the operand has rows as attention has
/// them (`is_rows`, [batch, seq, ...] with no other axis of that size), the second.
bool mixes_tokens(const ir::Node& node, const ir::Dim& seq, bool is_rows);

/// The first operator, besides the nodes of `attention`, that mixes tokens of the values `changed`
/// [batch, seq, ...] or of what is made of them, without the mask; null if there is none. What a
/// value made of `mask` [batch, seq] alone is multiplied with, added to or selected by counts as
/// masked.
const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention);

}  // namespace bertcl::passes
