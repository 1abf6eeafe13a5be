// SPDX-License-Identifier: Apache-2.0
// Instructions supported by this CPU and OS.
#pragma once
#include "opencl/device/capabilities.hpp"

namespace bertcl::opencl {

/// The flags of the instructions of CPUs; all others are false, and all are but on x86 and, under
/// Linux, 64-bit Arm.
Capabilities cpu_features();

}  // namespace bertcl::opencl
