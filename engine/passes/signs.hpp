// SPDX-License-Identifier: Apache-2.0
// Signs of values, as far as their operators tell them.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::passes {

/// True if no element is below zero, whatever the inputs of the graph are; NaN aside.
bool is_nonnegative(const ir::Value* value);

/// True if all elements are above zero, likewise and underflow aside, so that a quotient by them is
/// finite.
bool is_positive(const ir::Value* value);

}  // namespace bertcl::passes
