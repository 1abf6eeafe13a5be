// SPDX-License-Identifier: Apache-2.0
// Contracts of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear of ONNX. A tensor is seen
// as [outer, axis, inner]; a scale for each index of `axis`.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// y = saturate(round(x / scale) + zero_point).
template <class A>
struct Quantize {
  A x{}, y{}, y_type{}, scales{}, zero_points{}, count{}, axis{}, inner{}, chunk{};
  static constexpr Field<Quantize, A> fields[] = {
      {&Quantize::x, "x", "f32"},
      {&Quantize::y, "y", "u8|i8@y_type"},
      {&Quantize::y_type, "y_type", "int"},
      {&Quantize::scales, "scales", "f32"},                 // [axis]
      {&Quantize::zero_points, "zero_points", "u8|i8=y?"},  // [axis]
      {&Quantize::count, "count", "int"},
      {&Quantize::axis, "axis", "int"},
      {&Quantize::inner, "inner", "int"},
      {&Quantize::chunk, "chunk", "int"},
  };
};

/// y = (x - zero_point) * scale.
template <class A>
struct Dequantize {
  A x{}, x_type{}, y{}, scales{}, zero_points{}, count{}, axis{}, inner{}, chunk{};
  static constexpr Field<Dequantize, A> fields[] = {
      {&Dequantize::x, "x", "u8|i8|i32@x_type"},
      {&Dequantize::x_type, "x_type", "int"},
      {&Dequantize::y, "y", "f32"},
      {&Dequantize::scales, "scales", "f32"},                 // [axis]
      {&Dequantize::zero_points, "zero_points", "u8|i8=x?"},  // [axis]
      {&Dequantize::count, "count", "int"},
      {&Dequantize::axis, "axis", "int"},
      {&Dequantize::inner, "inner", "int"},
      {&Dequantize::chunk, "chunk", "int"},
  };
};

/// Least and largest value of each part of x.
template <class A>
struct DynamicRange {
  A x{}, ranges{}, count{};
  static constexpr Field<DynamicRange, A> fields[] = {
      {&DynamicRange::x, "x", "f32"},
      {&DynamicRange::ranges, "ranges", "f32"},
      {&DynamicRange::count, "count", "int"},
  };
};

/// Scale and zero point of the ranges, and x quantized by them.
template <class A>
struct DynamicQuantize {
  A x{}, ranges{}, y{}, scale_out{}, zero_point_out{}, count{}, chunk{};
  static constexpr Field<DynamicQuantize, A> fields[] = {
      {&DynamicQuantize::x, "x", "f32"},
      {&DynamicQuantize::ranges, "ranges", "f32"},
      {&DynamicQuantize::y, "y", "u8"},
      {&DynamicQuantize::scale_out, "scale_out", "f32"},           // [1]
      {&DynamicQuantize::zero_point_out, "zero_point_out", "u8"},  // [1]
      {&DynamicQuantize::count, "count", "int"},
      {&DynamicQuantize::chunk, "chunk", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract quantize_contracts[] = {
    row<Dequantize>("dequantize"),
    row<DynamicQuantize>("dynamic_quantize"),
    row<DynamicRange>("dynamic_range"),
    row<Quantize>("quantize"),
};

}  // namespace bertcl::kernels
