// SPDX-License-Identifier: Apache-2.0
// The text of tools/report/report.html, which the build puts into the program.
#pragma once
#include <string_view>

namespace bertcl::tools {

extern const std::string_view report_template;

}  // namespace bertcl::tools
