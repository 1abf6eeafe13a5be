// SPDX-License-Identifier: Apache-2.0
// Names of CL status codes.
#pragma once
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::opencl {

/// The name of a CL status code, for example "CL_OUT_OF_RESOURCES"; "unknown CL status" for others.
std::string status_name(int status);

/// out_of_memory, or else device.
ErrorCode error_code(int status);

}  // namespace bertcl::opencl
