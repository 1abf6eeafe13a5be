// SPDX-License-Identifier: Apache-2.0
// A graph that passes may change while the first one stays.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::ir {

/// The same graph with the same names; constants share their memory.
Graph copy(const Graph& graph);

}  // namespace bertcl::ir
