// SPDX-License-Identifier: Apache-2.0
// The parts of the page at `/`, which the build puts into the program.
#pragma once
#include <string_view>

namespace bertcl::serve {

extern const std::string_view page_html;  ///< with @style@ and @script@, where the others go
extern const std::string_view page_css;   ///< of the reports' pages, and the page's own
extern const std::string_view page_js;

}  // namespace bertcl::serve
