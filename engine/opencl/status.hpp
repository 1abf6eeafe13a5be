// SPDX-License-Identifier: Apache-2.0
// Names of CL status codes.
#pragma once
#include <string>

namespace bertcl::opencl {

/// The name of a CL status code, for example "CL_OUT_OF_RESOURCES"; "unknown CL status" for others.
std::string status_name(int status);

}  // namespace bertcl::opencl
