// SPDX-License-Identifier: Apache-2.0
// What a device, or its user, excludes.
#include "plan/target.hpp"

#include <fmt/format.h>

#include "opencl/queue.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

std::string Target::why_not_in_groups(const opencl::Kernel& kernel,
                                      const std::array<std::size_t, 3>& local) const {
  const std::size_t items = local[0] * local[1] * local[2];
  const std::size_t most = items > 1 ? context.queue().most_items(kernel) : items;
  return items <= most
             ? ""
             : fmt::format("the device runs its kernel in work-groups of up to {}, it needs {}",
                           most, items);
}

bool Target::is_disabled(std::string_view variant) const { return options.is_disabled(variant); }

}  // namespace bertcl::plan
