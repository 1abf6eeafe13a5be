// SPDX-License-Identifier: Apache-2.0
// Arguments of add_norm for tests of one thing.
#pragma once
#include "device_test.hpp"
#include "kernels/contracts/rows.hpp"

namespace bertcl::tests {

/// LayerNorm of x in f32, without a residual and without results.
inline kernels::AddNorm<KernelArgument> plain_norm(const opencl::Buffer& x,
                                                   const opencl::Buffer& gamma, float eps,
                                                   size_t rows, size_t hidden) {
  return {.x = x,
          .x_type = kF32,
          .residual_type = kF32,
          .gamma = gamma,
          .eps = eps,
          .rms = 0,
          .q_type = 0,
          .r_type = 0,
          .rows = static_cast<int32_t>(rows),
          .hidden = static_cast<int32_t>(hidden),
          .rows_per_item = 1};
}

}  // namespace bertcl::tests
