// SPDX-License-Identifier: Apache-2.0
// Contracts of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear of ONNX. A tensor is seen
// as [outer, axis, inner]; a scale for each index of `axis`.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// y = saturate(round(x / scale) + zero_point).
BERTCL_CONTRACT(Quantize, (x, "f32"), (y, "u8|i8@y_type"), (y_type, "int"),
                (scales, "f32"),            // [axis]
                (zero_points, "u8|i8=y?"),  // [axis]
                (count, "int"), (axis, "int"), (inner, "int"), (chunk, "int"));

/// y = (x - zero_point) * scale.
BERTCL_CONTRACT(Dequantize, (x, "u8|i8|i32@x_type"), (x_type, "int"), (y, "f32"),
                (scales, "f32"),            // [axis]
                (zero_points, "u8|i8=x?"),  // [axis]
                (count, "int"), (axis, "int"), (inner, "int"), (chunk, "int"));

/// Least and largest value of each part of x.
BERTCL_CONTRACT(DynamicRange, (x, "f32"), (ranges, "f32"), (count, "int"));

/// Scale and zero point of the ranges, and x quantized by them.
BERTCL_CONTRACT(DynamicQuantize, (x, "f32"), (ranges, "f32"), (y, "u8"), (scale_out, "f32"),  // [1]
                (zero_point_out, "u8"),                                                       // [1]
                (count, "int"), (chunk, "int"));

consteval auto quantize_contracts() {
  return std::array{
      contract_for<Dequantize>("dequantize"),
      contract_for<DynamicQuantize>("dynamic_quantize"),
      contract_for<DynamicRange>("dynamic_range"),
      contract_for<Quantize>("quantize"),
  };
}

}  // namespace bertcl::kernels
