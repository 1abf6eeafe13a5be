// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a float linear or attention: its attribute {precision}.
#pragma once
#include <optional>
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// The type that an option's "fp32", "fp16" or "bf16" names; none for another name.
std::optional<ir::DType> precision_named(std::string_view name);

/// f16, bf16, or f32 where the node says nothing. Throws bertcl::Error naming the node if the
/// attribute is neither "fp16" nor "bf16".
ir::DType precision_of(const ir::Node& node);

/// `precision`: f16 or bf16; throws std::invalid_argument for others.
void set_precision(ir::Node& node, ir::DType precision);

}  // namespace bertcl::ops
