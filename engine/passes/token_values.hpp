// SPDX-License-Identifier: Apache-2.0
// Values with a row for each token.
#pragma once
#include <set>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// The values [batch, seq, ...] whose second axis is that of the inputs [batch, seq]. Where the
/// file fixes seq, shapes alone do not tell them from others of as many columns: a pooled vector
/// [batch, 384] where ids are [batch, 384]. A seq of 1 is taken for one where another axis follows.
std::set<const ir::Value*> values_of_tokens(const ir::Graph& graph);

}  // namespace bertcl::passes
