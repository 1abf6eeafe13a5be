// SPDX-License-Identifier: Apache-2.0
// Sizes of a run as kernel arguments.
#include "runtime/launch.hpp"

#include <fmt/format.h>

#include <limits>

#include "bertcl/error.hpp"

namespace bertcl::runtime {

std::int32_t as_int(std::int64_t size, const plan::Step& step) {
  if (size > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format(
        "{} '{}': a size of {} exceeds the kernels' limit of 2^31 - 1; use a smaller batch",
        step.op, step.name, size));
  return static_cast<std::int32_t>(size);
}

}  // namespace bertcl::runtime
