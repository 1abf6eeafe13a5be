// SPDX-License-Identifier: Apache-2.0
// Tiles of int8 GEMMs for untuned GPUs, from a cost model, not from measurements.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/variants.hpp"
#include "opencl/device/device.hpp"

namespace bertcl::plan {

/// What runs without tuning where something is predicted, in place of the name of a variant.
inline constexpr std::string_view kPredictedTiles = "predicted tiles";

struct Prediction {
  struct ForRows {
    std::int64_t up_to_rows;  // of the last one: no limit
    std::size_t tile;         // of the variants
  };
  std::string architecture;
  std::vector<ForRows> by_rows;  // ascending; empty: nothing is predicted
};

/// The tile of least predicted time for each number of rows of a GEMM with weights [k, n], on a
/// device of a known architecture. `variants`: those that read the same weights, first the one
/// that runs where nothing is predicted; of equals the first is taken, and those that the table
/// does not have are left out. Without the first in the table nothing is predicted: any of its
/// tiles might be better.
Prediction predict_tiles(const opencl::DeviceInfo& device,
                         std::span<const kernels::GemmVariant> variants, std::int64_t n,
                         std::int64_t k);

}  // namespace bertcl::plan
