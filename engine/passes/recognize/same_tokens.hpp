// SPDX-License-Identifier: Apache-2.0
// Whether rows of two values belong to the same tokens.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::passes {

/// True if row [b, s] of `queries` [batch, seq, ...] is made of row [b, s] of what `keys` or `mask`
/// (null: none) are made of row by row, and of no other tokens' rows. Cross attention, whose
/// queries are other tokens than its keys, may have as many of them.
bool are_of_same_tokens(ir::Value* queries, ir::Value* keys, ir::Value* mask);

}  // namespace bertcl::passes
