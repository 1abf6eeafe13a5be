// SPDX-License-Identifier: Apache-2.0
// Type codes of the kernels, and parameters of quantization as the kernels take them.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::plan {

/// Code of an element type for the kernels (types.clh).
std::int32_t type_code(ir::DType type);

/// Codes of elementwise_unary.cl for the functions that linear has as activations too.
namespace unary {
enum : std::int32_t { tanh = 6, relu = 8, gelu = 9, gelu_tanh = 10 };
}

/// The code of an activation among those of elementwise_unary.cl.
std::int32_t unary_code(const std::string& activation);

/// Code of an activation for the epilogue of products (activation.clh); "" is none.
std::int32_t activation_code(const std::string& name);

/// The only element of a constant; `otherwise` if the operand is absent.
float scalar_or(const ir::Value* value, float otherwise);
std::int32_t zero_point_or_0(const ir::Value* value);

/// One number for each of `columns`, from a constant of one element or of `columns`; `otherwise` if
/// the operand is absent.
std::vector<float> per_column(const ir::Value* value, std::int64_t columns, float otherwise);

/// Rows of a tensor whose last axis is the row: the product of all other extents.
ir::Dim row_count(const ir::Shape& shape);

}  // namespace bertcl::plan
