// SPDX-License-Identifier: Apache-2.0
// Linears of one operand side by side, as one.
#pragma once
#include <span>
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// True if all are different linears of one operand, of one kind, without an activation, and none
/// has a reason to stay in float.
bool can_be_concatenated(std::span<ir::Node* const> linears);

/// A linear with the columns of all of them, in the place of the last; the old ones stay. Scales
/// and zero points become one per column, so that each keeps its own. `suffix` ends the names of
/// its operands and its result, which begin with those of the first.
ir::Node* concatenate_linears(ir::Graph& g, std::span<ir::Node* const> linears,
                              std::string_view suffix);

/// A scale or zero point as one element per column; null (zero point 0) becomes zeros.
ir::Value* as_one_per_column(ir::Graph& g, ir::Value* v, ir::Dim columns, ir::DType dtype);

/// Constants side by side along their last axis, named after the first.
ir::Value* concatenate_constants(ir::Graph& g, std::span<ir::Value* const> parts,
                                 std::string_view suffix);

}  // namespace bertcl::passes
