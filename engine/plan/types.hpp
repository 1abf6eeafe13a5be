// SPDX-License-Identifier: Apache-2.0
// Types, sizes, quantization parameters and other constants of columns as kernel arguments.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "kernels/types.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using kernels::activation_code;
using kernels::type_code;
using kernels::unary_code;
namespace unary = kernels::unary;

/// Throws bertcl::Error naming the node unless `type` is one of `supported`.
void check_type(const ir::Node& node, ir::DType type, std::initializer_list<ir::DType> supported);

/// The name of the kernel for elements of that type: "reduce_f32".
std::string kernel_for(std::string_view name, ir::DType type);

/// The only element of a constant; `default_value` if the operand is absent.
float scalar_or(const ir::Value* value, float default_value);
std::int32_t zero_point_or_0(const ir::Value* value);

/// One number for each of `columns`, from a constant of one element or of `columns`;
/// `default_value` if the operand is absent.
std::vector<float> per_column(const ir::Value* value, std::int64_t columns, float default_value);

/// f32 [values.size()].
Argument column_constants(Builder& b, std::vector<float> values);

/// What a kernel quantizes a result by: 1 / scale and the zero point of each column, f32 [columns].
struct OutColumns {
  Argument inv_scale = nullptr, zero_point = nullptr;
};

/// Made from constants of one element or of `columns`; `zero_point` may be null. Without `scale`
/// both are null: the result is not quantized.
OutColumns out_columns(Builder& b, const ir::Value* scale, const ir::Value* zero_point,
                       std::int64_t columns);

/// Rows of a tensor whose last axis is the row: the product of all other extents.
ir::Dim row_count(const ir::Shape& shape);

}  // namespace bertcl::plan
