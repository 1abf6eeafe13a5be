// SPDX-License-Identifier: Apache-2.0
// The launches of steps for the sizes of one run.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "bertcl/error.hpp"
#include "kernels/shared_numbers.hpp"
#include "opencl/grid.hpp"
#include "opencl/queue.hpp"
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

/// The grid of a kernel of a step for these sizes.
inline opencl::Grid launch_grid(const opencl::Queue& queue, const plan::StepKernel& launch,
                                const ir::Bindings& sizes) {
  opencl::Grid grid{.local = launch.local};
  for (std::size_t d = 0; d < 3; ++d)
    grid.global[d] = static_cast<std::size_t>(launch.global[d].evaluate(sizes));
  queue.group_items(launch.kernel, grid);
  return grid;
}

/// Queues a launch; where memory is short, once more when all that is queued has run.
inline void launch_or_retry(opencl::Queue& queue, const opencl::Kernel& kernel,
                            const opencl::Grid& grid, std::string_view label) {
  try {
    queue.launch(kernel, grid.global, grid.local, label);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    queue.finish();
    queue.launch(kernel, grid.global, grid.local, label);
  }
}

/// A size as a kernel argument. Throws Error naming the step if it overflows an int.
inline std::int32_t as_int(std::int64_t size, const plan::Step& step) {
  if (size > kernels::kMaxElements)
    throw Error(
        fmt::format("{} '{}': a size of {} exceeds the kernels' limit of {}; use a smaller batch",
                    step.op, step.name, size, kernels::kMaxElements));
  return static_cast<std::int32_t>(size);
}

}  // namespace bertcl::runtime
