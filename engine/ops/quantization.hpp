// SPDX-License-Identifier: Apache-2.0
// Arithmetic on quantized numbers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "ir/dtype.hpp"

namespace bertcl::ops {

/// Lowest and highest number of an integer type of at most 32 bits.
constexpr std::pair<std::int64_t, std::int64_t> range_of(ir::DType type) {
  const int bits = type == ir::DType::i8 || type == ir::DType::u8     ? 8
                   : type == ir::DType::i16 || type == ir::DType::u16 ? 16
                                                                      : 32;
  const bool is_signed = type == ir::DType::i8 || type == ir::DType::i16 || type == ir::DType::i32;
  const std::int64_t span = std::int64_t{1} << bits;
  return is_signed ? std::pair{-span / 2, span / 2 - 1} : std::pair{std::int64_t{0}, span - 1};
}

/// round(x) + zero point within the range of the type; half goes to even, NaN to the lowest number.
inline std::int64_t quantize_scaled(float x, std::int64_t zero_point, ir::DType type) {
  const auto [low, high] = range_of(type);
  if (std::isnan(x)) return low;
  const double rounded = std::nearbyint(static_cast<double>(x));
  return static_cast<std::int64_t>(std::clamp(rounded + static_cast<double>(zero_point),
                                              static_cast<double>(low), static_cast<double>(high)));
}

}  // namespace bertcl::ops
