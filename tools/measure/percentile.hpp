// SPDX-License-Identifier: Apache-2.0
// Percentiles of measured times, the same wherever times are told.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace bertcl::tools {

/// The value at `percent` of the way through sorted values, at least one, interpolated
/// linearly between two, as NumPy's. 50 is the median.
inline double percentile_of(std::span<const double> sorted, double percent) {
  const double place = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return low + (place - static_cast<double>(below)) * (high - low);
}

}  // namespace bertcl::tools
