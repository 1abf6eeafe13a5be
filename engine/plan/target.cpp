// SPDX-License-Identifier: Apache-2.0
// What a device, or its user, excludes.
#include "plan/target.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "opencl/queue.hpp"
#include "plan/options.hpp"

namespace bertcl::plan {

void Target::build(const opencl::Kernel& kernel) const {
  try {
    kernel.build();
    return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  context.queue().finish();
  try {
    kernel.build();
  } catch (const opencl::ProgramBuildError& refused) {
    throw Error(refused.what(), ErrorCode::device);
  }
}

std::string Target::why_not_in_groups(const opencl::Kernel& kernel,
                                      const std::array<std::size_t, 3>& local) const {
  const std::size_t items = local[0] * local[1] * local[2];
  const std::size_t most = items > 1 ? context.queue().max_items(kernel) : items;
  return items <= most
             ? ""
             : fmt::format("the device runs its kernel in work-groups of up to {}, it needs {}",
                           most, items);
}

bool Target::is_disabled(std::string_view variant) const { return options.is_disabled(variant); }

}  // namespace bertcl::plan
