// SPDX-License-Identifier: Apache-2.0
// Work-groups of a kernel whose work-items are independent.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>

#include "support/ceil_div.hpp"

namespace bertcl::opencl {

struct Grid {
  std::array<std::size_t, 3> global{}, local{1, 1, 1};
};

/// Sizes for at least `items` work-items on a GPU, which runs the work-items of a group side by
/// side and gives a group of one a whole compute unit's vector. Groups have 64 items, or 16 if
/// there are too few items for `compute_units`; at least `multiple`, the kernel's preferred
/// multiple, and no more than `most`. Both sizes of a group are powers of two; the global size is
/// padded to whole groups in x and y, never in z, so a kernel must ignore items past its sizes.
inline Grid in_groups(std::array<std::size_t, 3> items, std::size_t multiple, std::size_t most,
                      std::size_t compute_units) {
  Grid grid{.global = items};
  const std::size_t all = items[0] * items[1] * items[2];
  if (all <= 1) return grid;
  std::size_t left = std::max<std::size_t>(all < 64 * compute_units ? 16 : 64, multiple);
  left = std::bit_floor(std::clamp<std::size_t>(left, 1, std::max<std::size_t>(most, 1)));
  for (std::size_t d = 0; d < 2; ++d) {
    const std::size_t size = std::min(left, std::bit_ceil(items[d]));
    grid.local[d] = size;
    grid.global[d] = round_up(items[d], size);
    left /= size;
  }
  return grid;
}

/// Work-groups that NVIDIA's devices take along each axis but the first. OpenCL has no query for
/// it.
inline constexpr std::size_t kMaxGroups = 65'535;

/// What to do about a launch that failed, where this limit may be the cause; else "".
inline std::string hint_of_groups(const Grid& grid) {
  const auto groups = [&](std::size_t axis) { return grid.global[axis] / grid.local[axis]; };
  if (std::max(groups(1), groups(2)) <= kMaxGroups) return "";
  return fmt::format(
      ": some devices take at most {} work-groups along the second and third axis; use smaller "
      "batches",
      kMaxGroups);
}

}  // namespace bertcl::opencl
