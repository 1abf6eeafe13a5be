// SPDX-License-Identifier: Apache-2.0
// The binary of a program, for .cpp files of engine/opencl.
#pragma once
#include <string>

#include "opencl/base/cl.hpp"

namespace bertcl::opencl {

/// The binary for `device`; empty if the driver gives none.
std::string binary_of(cl_program program, cl_device_id device);

}  // namespace bertcl::opencl
