// SPDX-License-Identifier: Apache-2.0
// The check of every node against the definition of its operator.
#pragma once
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// Throws bertcl::Error that names `where` and the node if an operator has no definition, too few
/// or too many operands, or one of a type that it does not take; for bertcl's own ops also if
/// results are declared other types than their operands give. The graph may note assumptions
/// (Graph::assumptions) about sizes on the way.
void verify(ir::Graph& graph, std::string_view where);

}  // namespace bertcl::ops
