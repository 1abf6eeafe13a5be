// SPDX-License-Identifier: Apache-2.0
// Copies a graph, so that passes can change the copy.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::ir {

/// The same graph with the same names; constants share their memory.
Graph copy(const Graph& graph);

}  // namespace bertcl::ir
