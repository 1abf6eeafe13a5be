// SPDX-License-Identifier: Apache-2.0
// The division of K among work-groups, where an int8 GEMM has fewer tiles than the device has
// compute units.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/variants.hpp"
#include "opencl/device.hpp"

namespace bertcl::plan {

struct GemmParts {
  std::int64_t up_to_rows = 0;  // where K is divided
  std::int32_t parts = 1;
};

// Variants of linear_q: the sums of the parts, and the step that adds them.
inline constexpr const char *kMmaParts = "mma_parts", *kMmaFinish = "mma_finish";
// A variant of add_norm: adds them, too.
inline constexpr const char* kMmaNorm = "mma_norm";
inline constexpr std::int32_t kPartRows = 32, kPartColumns = 64;  // of a tile
inline constexpr std::int32_t kMostParts = 8;
// Of K: a smaller part saves less time than the extra launch costs.
inline constexpr std::int64_t kLeastPart = 512;
inline constexpr std::int64_t kLeastTunedPart = 128;  // minimum when tuning

/// For weights [k, n]: as many rows as have fewer tiles than the device has compute units, and as
/// many parts as give half of them two groups a unit.
inline GemmParts parts_of(std::int64_t n, std::int64_t k, std::int64_t compute_units) {
  if (n < 1 || compute_units < 2) return {};
  const std::int64_t columns = (n + kPartColumns - 1) / kPartColumns;
  const std::int64_t tiles_down = (compute_units - 1) / columns;
  const std::int64_t tiles = std::max<std::int64_t>(tiles_down * columns / 2, 1);
  const std::int64_t parts =
      std::min({(2 * compute_units + tiles - 1) / tiles, k / kLeastPart, std::int64_t{kMostParts}});
  if (tiles_down < 1 || parts < 2) return {};
  return {tiles_down * kPartRows, static_cast<std::int32_t>(parts)};
}

/// Enough for the sums of every such GEMM.
inline std::size_t bytes_of_partial_sums(const opencl::DeviceInfo& info) {
  return std::size_t{kMostParts} * kPartRows * kPartColumns * sizeof(std::int32_t) *
         info.compute_units;
}

/// Rows whose sums fit there.
inline std::int64_t rows_of_partial_sums(const opencl::DeviceInfo& info, std::int64_t n,
                                         std::int32_t parts) {
  const auto sums = static_cast<std::int64_t>(bytes_of_partial_sums(info) / sizeof(std::int32_t));
  return n < 1 ? 0 : sums / (n * parts);
}

}  // namespace bertcl::plan
