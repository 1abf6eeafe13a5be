// SPDX-License-Identifier: Apache-2.0
// Graphs of tests from the text form of ir/text.hpp.
#pragma once
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::ir {

/// Reads the text form. Constants written as "..." are zeros; "splat x" repeats one value.
/// Throws bertcl::Error with line and column.
Graph parse(std::string_view text);

}  // namespace bertcl::ir
