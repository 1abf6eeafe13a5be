// SPDX-License-Identifier: Apache-2.0
// Reports as HTML pages of one style that need nothing from elsewhere.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/arithmetic.hpp"

namespace bertcl::tools {

enum class Page { inspect, eval, bench };

/// The template of a page with `view` in it. Text is escaped and its control characters become
/// spaces; only what the template asks for in three braces (figures) goes in as it is. A section
/// of the template shows where its value is neither empty nor false.
std::string render_page(Page page, const nlohmann::ordered_json& view);

/// The same with U+FFFD for what is not UTF-8: names of files and tensors may hold any bytes.
nlohmann::ordered_json as_utf8(const nlohmann::ordered_json& report);

/// Any bytes as text of a page or figure: UTF-8 as above, spaces for control characters.
std::string plain_text(const std::string& text);

/// One of "tiles", the figures at the head of a page.
nlohmann::ordered_json tile(const std::string& label, const std::string& value,
                            const std::string& note);

/// The class of a kind of arithmetic in the pages' style, which colors bf16 as fp16.
const char* color_of(plan::Arithmetic::Kind kind);

/// "{:.1f}" of a share in percent, 0 where there is no whole.
std::string percent_text(double part, double whole);

}  // namespace bertcl::tools
