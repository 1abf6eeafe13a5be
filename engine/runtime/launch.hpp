// SPDX-License-Identifier: Apache-2.0
// The steps of a plan, and the locations of their values, for the sizes of one run.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "bertcl/error.hpp"
#include "kernels/shared_numbers.hpp"
#include "opencl/buffer.hpp"
#include "opencl/grid.hpp"
#include "plan/plan.hpp"

namespace bertcl::runtime {

/// The variant of a step's kernel for these sizes; no kernel for a library call.
struct Launch {
  const opencl::Kernel* kernel = nullptr;
  int persistent_index = -1;  // of that variant
  opencl::Grid grid;
  std::size_t first_table = 0;  // of the step's arguments, among those of all steps
};

/// Memory of slots and tables.
struct Memory {
  opencl::Buffer arena, tables;
  std::uint64_t arena_address = 0, tables_address = 0;  // for merged steps
  std::vector<opencl::Buffer> values;      // instead of the arena, where views may not overlap
  std::int64_t arena_bytes = 0;            // of it in use
  std::vector<std::int64_t> slot_offsets;  // in the arena, by root slot
  std::vector<std::size_t> table_offsets;  // in `tables`, in the order of the steps' arguments
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
