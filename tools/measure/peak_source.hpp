// SPDX-License-Identifier: Apache-2.0
// peak.cl, which the build puts into the program.
#pragma once
#include <string_view>

namespace bertcl::tools {

extern const std::string_view peak_cl;

}  // namespace bertcl::tools
