// SPDX-License-Identifier: Apache-2.0
// Weight scales with the least rounding and clipping error.
#pragma once
#include <string>

#include "quant/calibration/parameters.hpp"

namespace bertcl::quant {

/// The values that the scale of a weight, or of one of its channels, covers.
enum class WeightScale {
  max,  ///< all of its values
  mse,  ///< that part of their range which changes the values least: the others are clipped
};

/// Smallest part of a range that is tried; a hundredth of the range lies between one and the next.
inline constexpr int kSmallestPercent = 20;

/// Of 100, 99, .. kSmallestPercent percent of the range of each index of `axis` (-1: of all values)
/// the one whose integers have the least sum of squares of Q/DQ(x) - x, the larger one of equals.
/// Per channel always symmetric. Integers saturate at those of the scheme's bits. Throws Error as
/// quantize_per_channel().
QuantizedConstant quantize_by_min_error(const ir::Tensor& constant, int axis,
                                        const std::string& name, Scheme scheme);

}  // namespace bertcl::quant
