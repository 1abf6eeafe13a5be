// SPDX-License-Identifier: Apache-2.0
// The files of pages/, which the build puts into the program.
#pragma once
#include <string_view>

namespace bertcl::tools {

extern const std::string_view style_css;     ///< of all pages
extern const std::string_view head_html;     ///< their beginning
extern const std::string_view tiles_html;    ///< and their figures
extern const std::string_view inspect_html;  ///< templates, for mustache
extern const std::string_view eval_html;
extern const std::string_view bench_html;

}  // namespace bertcl::tools
