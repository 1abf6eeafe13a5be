// SPDX-License-Identifier: Apache-2.0
// The version of the loaded library, which may be newer than the header.
#pragma once
#include "bertcl/export.h"

namespace bertcl {

/// "0.1.0"
BERTCL_API const char* version();

}  // namespace bertcl
