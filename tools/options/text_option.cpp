// SPDX-License-Identifier: Apache-2.0
// Options whose value is a text for the model.
#include "tools/options/text_option.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "text/base/data_file.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tools {

std::string text_fault(const std::string& text) {
  const auto bad = text::first_ill_formed(text);
  return bad ? fmt::format("invalid UTF-8 at byte {} of {}", *bad, text.size()) : "";
}

CLI::Option* text_option(CLI::Option* option) {
  return option->check(CLI::Validator(text_fault, ""))->type_name("TEXT");
}

CLI::Option* text_option(CLI::Option* option, const std::string& blank) {
  const auto check = [blank](const std::string& text) {
    return text::is_blank(text) ? blank : text_fault(text);
  };
  return option->check(CLI::Validator(check, ""))->type_name("TEXT");
}

}  // namespace bertcl::tools
