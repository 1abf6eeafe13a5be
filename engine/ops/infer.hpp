// SPDX-License-Identifier: Apache-2.0
// Type inference of nodes and graphs.
#pragma once
#include "ir/graph.hpp"
#include "ops/symbolic.hpp"

namespace bertcl::ops {

/// Sets the types of a node's results, and in `values` what is known about their elements. Throws
/// bertcl::Error naming the node if its operator is unknown or its operands do not match.
void infer(ir::Graph& graph, ir::Node& node, SymbolicValues& values);
/// The same for every node that has a definition; others keep their types.
void infer(ir::Graph& graph, SymbolicValues& values);

}  // namespace bertcl::ops
