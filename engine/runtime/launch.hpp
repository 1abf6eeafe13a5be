// SPDX-License-Identifier: Apache-2.0
// The launch of a step for the sizes of one run.
#pragma once
#include <fmt/format.h>

#include <cstdint>

#include "bertcl/error.hpp"
#include "kernels/shared_numbers.hpp"
#include "opencl/grid.hpp"
#include "plan/plan.hpp"

namespace bertcl::runtime {

/// The variant of a step's kernel for these sizes; no kernel for a library call.
struct Launch {
  const opencl::Kernel* kernel = nullptr;  // of the plan
  opencl::Kernel with_arguments;  // a duplicate of it; none before the step is launched by itself
  int persistent_index = -1;      // of that variant
  opencl::Grid grid;
  std::size_t first_table = 0;  // of the step's arguments, among those of all steps
};

/// A size as a kernel argument. Throws Error naming the step if it overflows an int.
inline std::int32_t as_int(std::int64_t size, const plan::Step& step) {
  if (size > kernels::kMaxElements)
    throw Error(
        fmt::format("{} '{}': a size of {} exceeds the kernels' limit of {}; use a smaller batch",
                    step.op, step.name, size, kernels::kMaxElements));
  return static_cast<std::int32_t>(size);
}

}  // namespace bertcl::runtime
