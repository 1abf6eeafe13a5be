// SPDX-License-Identifier: Apache-2.0
// Checks of option values that leave the help readable.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace bertcl::tools {

/// One of `values`, which the help shows as "a|b", with the default.
inline CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& values) {
  CLI::Validator check = CLI::IsMember(values);
  return option->check(check.description(""))
      ->type_name(fmt::format("{}", fmt::join(values, "|")))
      ->capture_default_str();
}

/// A number above 0, with the default in the help.
inline CLI::Option* positive(CLI::Option* option, const std::string& name = "N") {
  return option->check(CLI::PositiveNumber.description(""))->type_name(name)->capture_default_str();
}

/// A number from 0.
inline CLI::Option* not_negative(CLI::Option* option, const std::string& name = "N") {
  return option->check(CLI::NonNegativeNumber.description(""))
      ->type_name(name)
      ->capture_default_str();
}

}  // namespace bertcl::tools
