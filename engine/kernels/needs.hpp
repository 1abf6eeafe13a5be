// SPDX-License-Identifier: Apache-2.0
// What a kernel variant requires of a device.
#pragma once
#include <string>
#include <vector>

#include "opencl/device/capabilities.hpp"
#include "opencl/device/device.hpp"

namespace bertcl::kernels {

/// Kind of device that a variant is made for; `any`: suitable everywhere.
enum class DeviceKind { any, cpu, gpu };

struct Needs {
  DeviceKind kind = DeviceKind::any;
  std::vector<bool opencl::Capabilities::*> one_of = {};  // of these capabilities; none: no need
  bool opencl::Capabilities::*also = nullptr;             // and this one
  bool matrix_unit = false;                               // one of opencl::matrix_units()
  std::size_t group_items = 1;                            // of a work-group
  std::size_t local_bytes = 0;                            // of a work-group
};

struct Refusal {
  std::string reason;  // a sentence for the report; "" if the device has all of it
  /// The variant is made for another kind of device: it is not faster on this one, so the report
  /// leaves it out.
  bool is_other_kind = false;
};

Refusal why_not(const Needs& needs, const opencl::DeviceInfo& info,
                const opencl::Capabilities& capabilities);

}  // namespace bertcl::kernels
