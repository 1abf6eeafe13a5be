// SPDX-License-Identifier: Apache-2.0
// Nodes whose operands are all constant, evaluated within the limit of memory.
#pragma once
#include <functional>

#include "ir/graph.hpp"
#include "ir/limits.hpp"

namespace bertcl::passes {

/// Puts constants in the place of the nodes with constant operands that `may_fold` allows; true if
/// there were any. Results much larger than the operands stay nodes. Throws Error if the constants
/// made exceed what `limits` allows.
bool evaluate_constants(ir::Graph& graph, const ir::Limits& limits,
                        const std::function<bool(const ir::Node&)>& may_fold);

}  // namespace bertcl::passes
