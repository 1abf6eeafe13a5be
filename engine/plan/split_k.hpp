// SPDX-License-Identifier: Apache-2.0
// Split-K: K is divided among work-groups where an int8 GEMM has fewer tiles than the device has
// compute units.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/variants.hpp"
#include "opencl/device/device.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::plan {

struct SplitK {
  std::int64_t up_to_rows = 0;  // with split-K
  std::int32_t splits = 1;
};

inline constexpr std::int32_t kMaxSplits = 8;
// Of K: a smaller split saves less time than the extra launch costs.
inline constexpr std::int64_t kMinSplitDepth = 512;
inline constexpr std::int64_t kMinTunedSplitDepth = 128;  // minimum when tuning

/// For weights [k, n]: splits K for row counts whose tiles do not fill the device, into enough
/// parts that half of these tiles give two work-groups per compute unit.
inline SplitK split_k_of(std::int64_t n, std::int64_t k, std::int64_t compute_units) {
  if (n < 1 || compute_units < 2) return {};
  const auto [tile_rows, tile_columns] = kernels::split_k_variants().tile;
  const std::int64_t columns = ceil_div(n, tile_columns);
  const std::int64_t tiles_down = (compute_units - 1) / columns;
  const std::int64_t tiles = std::max<std::int64_t>(tiles_down * columns / 2, 1);
  const std::int64_t splits =
      std::min({ceil_div(2 * compute_units, tiles), k / kMinSplitDepth, std::int64_t{kMaxSplits}});
  if (tiles_down < 1 || splits < 2) return {};
  return {tiles_down * tile_rows, static_cast<std::int32_t>(splits)};
}

/// Enough for the sums of every such GEMM.
inline std::size_t bytes_of_partial_sums(const opencl::DeviceInfo& info) {
  const auto [tile_rows, tile_columns] = kernels::split_k_variants().tile;
  return std::size_t{kMaxSplits} * tile_rows * tile_columns * sizeof(std::int32_t) *
         info.compute_units;
}

/// Partial sums of one row of a GEMM.
inline double partial_sum_bytes_per_row(std::int64_t n, std::int32_t splits) {
  return static_cast<double>(n) * splits * sizeof(std::int32_t);
}

/// Rows whose sums fit there.
inline std::int64_t rows_of_partial_sums(const opencl::DeviceInfo& info, std::int64_t n,
                                         std::int32_t splits) {
  const auto sums = static_cast<std::int64_t>(bytes_of_partial_sums(info) / sizeof(std::int32_t));
  return n < 1 ? 0 : sums / (n * splits);
}

}  // namespace bertcl::plan
