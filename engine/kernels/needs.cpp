// SPDX-License-Identifier: Apache-2.0
// The reason why a device does not run a variant.
#include "kernels/needs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bertcl::kernels {

Refusal why_not(const Needs& needs, const opencl::DeviceInfo& info,
                const opencl::Capabilities& capabilities) {
  const bool is_cpu = info.is_cpu();
  const bool has_one =
      std::ranges::any_of(needs.one_of, [&](auto flag) { return capabilities.*flag; }) &&
      (!needs.matrix_unit || opencl::matrix_unit_of(capabilities));
  const bool lacks_other = needs.also && !(capabilities.*needs.also);
  if (needs.kind != DeviceKind::any && (!has_one || lacks_other) &&
      is_cpu != (needs.kind == DeviceKind::cpu))
    return {is_cpu ? "GPUs only" : "CPUs only", true};
  if (info.max_work_group_size < needs.group_items)
    return {fmt::format("the device does not support work-groups of {}", needs.group_items)};
  if (info.local_mem_bytes < needs.local_bytes)
    return {fmt::format("it needs {} KB of local memory, the device has {} KB",
                        needs.local_bytes / 1024, info.local_mem_bytes / 1024)};
  if (lacks_other)
    return {fmt::format("the device has no {}", opencl::capability_name(needs.also))};
  if (has_one || needs.one_of.empty()) return {};
  std::string names;
  for (const auto flag : needs.one_of)
    names += (names.empty() ? "" : " or ") + std::string(opencl::capability_name(flag));
  return {"the device has no " + names};
}

}  // namespace bertcl::kernels
