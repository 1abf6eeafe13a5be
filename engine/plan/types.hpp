// SPDX-License-Identifier: Apache-2.0
// Types, quantization parameters and sizes as kernel arguments.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "kernels/types.hpp"

namespace bertcl::plan {

using kernels::activation_code;
using kernels::type_code;
using kernels::unary_code;
namespace unary = kernels::unary;

/// The name of `type`, as those of kernels end. Throws bertcl::Error naming the node unless it is
/// one of `supported`.
std::string supported_type(const ir::Node& node, ir::DType type,
                           std::initializer_list<ir::DType> supported);

/// The only element of a constant; `default_value` if the operand is absent.
float scalar_or(const ir::Value* value, float default_value);
std::int32_t zero_point_or_0(const ir::Value* value);

/// One number for each of `columns`, from a constant of one element or of `columns`;
/// `default_value` if the operand is absent.
std::vector<float> per_column(const ir::Value* value, std::int64_t columns, float default_value);

/// Rows of a tensor whose last axis is the row: the product of all other extents.
ir::Dim row_count(const ir::Shape& shape);

}  // namespace bertcl::plan
