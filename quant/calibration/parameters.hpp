// SPDX-License-Identifier: Apache-2.0
// Turns ranges into scales and zero points, and floats into 8-bit integers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.hpp"

namespace bertcl::quant {

/// The values that a tensor takes. `low <= high`; 0 need not lie between.
struct Range {
  float low = 0.0f;
  float high = 0.0f;
  friend bool operator==(const Range&, const Range&) = default;
};

/// The largest absolute value.
inline float magnitude(Range range) { return std::max(std::abs(range.low), std::abs(range.high)); }
/// -a .. a, of a magnitude; of a negative one, too: onnxruntime stores the larger end with its
/// sign.
inline Range symmetric_range(float magnitude) {
  return {-std::abs(magnitude), std::abs(magnitude)};
}
inline Range symmetric(Range range) { return symmetric_range(magnitude(range)); }

/// Ranges by tensor.
using Ranges = std::map<std::string, Range>;

/// The integers that a range maps to.
enum class Steps {
  standard,  ///< all of the type; symmetric i8 without -128
  full,      ///< symmetric i8 with -128: steps of 2 absmax / 255, as torch's fake quantization
  reduced,   ///< 7 bits: -64 .. 64, or 0 .. 127, as `reduce_range` of onnxruntime
};

/// How a tensor is quantized.
struct Scheme {
  ir::DType type = ir::DType::u8;  ///< u8 or i8
  bool symmetric = false;          ///< a range -a .. a, so that 0 is the middle of the integers
  Steps steps = Steps::standard;
  int bits = 8;  ///< 2 to 8; fewer than 8 lie in the middle of the type, with standard steps
  float min_range = 0.0f;  ///< upper ends are raised to it, as `MinimumRealRange`

  int used_bits() const { return steps == Steps::reduced ? 7 : bits; }
  friend bool operator==(const Scheme&, const Scheme&) = default;
};

/// real = (q - zero_point) * scale. The scale is positive.
struct Parameters {
  float scale = 1.0f;
  std::int32_t zero_point = 0;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// Scale and zero point as `compute_scale_zp` of onnxruntime 1.31 (quantization/quant_utils.py):
/// the range is widened to hold 0 and to its shortest length, and, if symmetric, made -a .. a; the
/// scale is its length through the number of steps (255; 254 for symmetric i8; others by `Scheme`),
/// in double and then rounded to float; the zero point is rounded half to even (128 for symmetric
/// u8). A range whose scale would be 0 or subnormal gives scale 1, zero point 0. Throws Error if an
/// end is not finite.
Parameters parameters_of(Range range, Scheme scheme);

/// Smallest and largest integer of u8 or i8. Throws Error for another type.
std::pair<std::int32_t, std::int32_t> integers_of(ir::DType type);

/// The integer limits of a scheme: those of its bits, or of the type for 8 bits.
std::pair<std::int32_t, std::int32_t> saturation_of(Scheme scheme);

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

/// One scale for each index of `axis`, always symmetric. `constant` is f32; `name` is for messages.
/// Throws Error on another type, an axis outside the shape, or a value that is not finite.
QuantizedConstant quantize_per_channel(const ir::Tensor& constant, int axis,
                                       const std::string& name,
                                       Scheme scheme = {ir::DType::i8, true});

/// One scale and zero point, of `range` or from the smallest and largest value.
QuantizedConstant quantize_per_tensor(const ir::Tensor& constant, Scheme scheme,
                                      const std::string& name,
                                      std::optional<Range> range = std::nullopt);

/// Quantizes with one scale and zero point, or one for each index of `axis`, that are known.
/// Integers saturate as saturation_of(scheme) says. zero_channels stays 0.
QuantizedConstant quantize_by(const ir::Tensor& constant, std::span<const Parameters> parameters,
                              int axis, Scheme scheme, const std::string& name);

/// The indices of an axis; one channel for the axis -1.
struct Channels {
  std::int64_t count = 1, inner = 1;
  /// visit(i, c) for each of `size` elements, whole channels of them, and its channel.
  template <class Visit>
  void for_each(std::size_t size, const Visit& visit) const {
    for (std::size_t i = 0; i < size;)
      for (std::int64_t c = 0; c < count; ++c)
        for (std::int64_t k = 0; k < inner; ++k) visit(i++, static_cast<std::size_t>(c));
  }
};
/// Throws Error if the shape has no such axis.
Channels channels_of(const ir::Tensor& constant, int axis, const std::string& name);

/// Smallest and largest element and 0 of each index of `axis`; of all if it is -1.
std::vector<Range> ranges_along(const ir::Tensor& constant, int axis, const std::string& name);

/// Smallest and largest element of an f32 constant; {0, 0} if it is empty. Throws Error if one is
/// not finite.
Range range_of(const ir::Tensor& constant, const std::string& name);

}  // namespace bertcl::quant
