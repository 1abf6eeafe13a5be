// SPDX-License-Identifier: Apache-2.0
// A device with its CL identifiers; for .cpp files of engine/opencl.
#pragma once
#include <string>
#include <vector>

#include "opencl/base/cl.hpp"
#include "opencl/device/device.hpp"

namespace bertcl::opencl {

struct Device {
  DeviceInfo info;
  cl_device_id id = nullptr;
  cl_platform_id platform = nullptr;
};

/// list_devices() and select_device() with the identifiers.
std::vector<Device> find_devices();
Device find_device(const std::string& selector);
/// The caller's device. A sub-device gets the index of its parent.
/// Throws Error where kernels do not run on it.
Device device_of(cl_device_id id);

}  // namespace bertcl::opencl
