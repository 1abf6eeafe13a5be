// SPDX-License-Identifier: Apache-2.0
// From a range of values to scale and zero point, and from floats to 8-bit integers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor.hpp"

namespace bertcl::quant {

/// The values that a tensor takes. `low <= high`; 0 need not lie between.
struct Range {
  float low = 0.0f;
  float high = 0.0f;
  friend bool operator==(const Range&, const Range&) = default;
};

/// How a tensor becomes integers.
struct Scheme {
  ir::DType type = ir::DType::u8;  ///< u8 or i8
  bool symmetric = false;          ///< a range -a .. a, so that 0 is the middle of the integers
  friend bool operator==(const Scheme&, const Scheme&) = default;
};

/// real = (q - zero_point) * scale. The scale is positive.
struct Parameters {
  float scale = 1.0f;
  std::int32_t zero_point = 0;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// Scale and zero point as `compute_scale_zp` of onnxruntime 1.31 (quantization/quant_utils.py):
/// the range is widened to hold 0 and, if symmetric, made -a .. a; the scale is its length through
/// the number of steps (255; 254 for symmetric i8), in double and then rounded to float; the zero
/// point is rounded half to even (128 for symmetric u8). A range whose scale would be 0 or
/// subnormal gives scale 1, zero point 0. Throws Error if an end is not finite.
Parameters parameters_of(Range range, Scheme scheme);

/// saturate(round_half_even(x / scale) + zero_point) over the whole integer type, as
/// QuantizeLinear.
std::int32_t quantize_value(float x, Parameters parameters, ir::DType type);

/// A constant as integers.
struct QuantizedConstant {
  ir::Tensor values;                      ///< u8 or i8, shape of the constant
  std::vector<float> scales;              ///< one, or one for each index of `axis`
  std::vector<std::int32_t> zero_points;  ///< as many
  int axis = -1;                          ///< of the scales; -1: per tensor
  std::int64_t zero_channels = 0;         ///< channels of zeros alone, given the scale 1
};

/// Symmetric i8, one scale for each index of `axis`. `constant` is f32; `name` is for messages.
/// Throws Error on another type, an axis outside the shape, or a value that is not finite.
QuantizedConstant quantize_per_channel(const ir::Tensor& constant, int axis,
                                       const std::string& name);

/// One scale and zero point from the smallest and largest value.
QuantizedConstant quantize_per_tensor(const ir::Tensor& constant, Scheme scheme,
                                      const std::string& name);

/// Smallest and largest element of an f32 constant; {0, 0} if it is empty. Throws Error if one is
/// not finite.
Range range_of(const ir::Tensor& constant, const std::string& name);

}  // namespace bertcl::quant
