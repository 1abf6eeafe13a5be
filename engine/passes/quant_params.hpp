// SPDX-License-Identifier: Apache-2.0
// Reading of QuantizeLinear and DequantizeLinear nodes.
#pragma once
#include <optional>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// The most products of two bytes whose sum always fits an int32: bytes of x minus their zero point
/// are within 255, those of the weight within 128, or 255 with a zero point.
constexpr std::int64_t max_exact_products(bool weight_has_zero_point = false) {
  return ((std::int64_t{1} << 31) - 1) / (255 * (weight_has_zero_point ? 255 : 128));
}

/// Operands of a DequantizeLinear: real = (q - zero_point) * scale.
struct Dequantized {
  ir::Node* node = nullptr;
  ir::Value* quantized = nullptr;
  ir::Value* scale = nullptr;       // constant f32 of one element, or one for each column
  ir::Value* zero_point = nullptr;  // constant of the quantized type, or null for 0
};

/// The DequantizeLinear after `v` if it is per tensor, of u8 or i8, with constant parameters.
std::optional<Dequantized> per_tensor_dequantized(const ir::Value* v);

/// The DequantizeLinear after `v` if it is per tensor or per column, else as above.
std::optional<Dequantized> per_tensor_or_column_dequantized(const ir::Value* v);

/// True if scale and zero point of a Q or DQ node are constants of one element.
bool is_per_tensor(const ir::Node& node);

/// True if they are constants of one element, or of one for each index of the last axis.
bool is_per_tensor_or_column(const ir::Node& node);

/// True if 1 / scale, with which fused kernels multiply, is finite for each of a constant.
bool has_inverse(const ir::Value& scale);

/// Same scale and zero point, even if they are different initializers.
bool same_parameters(const ir::Node& a, const ir::Node& b);

/// Zero point as a number; 0 where absent.
std::int64_t zero_point_of(const ir::Value* zero_point);

}  // namespace bertcl::passes
