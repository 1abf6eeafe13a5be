// SPDX-License-Identifier: Apache-2.0
// Tiles of int8 GEMMs for GPUs that nobody has tuned: a model on paper, not a measurement.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/variants.hpp"
#include "opencl/device.hpp"

namespace bertcl::plan {

struct Prediction {
  struct ForRows {
    std::int64_t up_to_rows;  // of the last one: no limit
    std::size_t tile;         // of the candidates
  };
  std::string architecture;
  std::vector<ForRows> by_rows;  // ascending; empty: nothing is predicted
};

/// The tile of least predicted time for each number of rows of a GEMM with weights [k, n], on a
/// device of a known architecture. `candidates`: variants that read the same weights; of equals
/// the first is taken, and those that the table does not have are left out.
Prediction predict_tiles(const opencl::DeviceInfo& device,
                         std::span<const kernels::GemmVariant> candidates, std::int64_t n,
                         std::int64_t k);

}  // namespace bertcl::plan
