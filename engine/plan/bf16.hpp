// SPDX-License-Identifier: Apache-2.0
// Which values of a plan are kept in bf16: those that bf16 kernels alone read.
#pragma once
#include <string>

#include "kernels/needs.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

/// Why float products do not run in bf16; without a reason if they do.
kernels::Refusal why_not_bf16(Builder& b);

/// Why this node of float attention cannot run in bf16, where products do; "" if it can. Its
/// operands have to be products that nothing else reads, and only products may read its result.
std::string why_not_bf16_attention(Builder& b, const ir::Graph& graph, const ir::Node& attention);

/// True if a product that runs in bf16 reads the value as its left operand.
bool is_bf16_operand(Builder& b, const ir::Value* value);

/// True if the value needs no other form than bf16.
bool is_read_in_bf16_only(Builder& b, const ir::Graph& graph, const ir::Value* value);

}  // namespace bertcl::plan
