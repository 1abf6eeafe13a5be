// SPDX-License-Identifier: Apache-2.0
// Sizes of a run as kernel arguments.
#include "runtime/launch.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "kernels/shared_numbers.hpp"

namespace bertcl::runtime {

std::int32_t as_int(std::int64_t size, const plan::Step& step) {
  if (size > kernels::kMaxElements)
    throw Error(
        fmt::format("{} '{}': a size of {} exceeds the kernels' limit of {}; use a smaller batch",
                    step.op, step.name, size, kernels::kMaxElements));
  return static_cast<std::int32_t>(size);
}

}  // namespace bertcl::runtime
