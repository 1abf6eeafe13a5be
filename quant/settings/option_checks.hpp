// SPDX-License-Identifier: Apache-2.0
// Checks of option values with readable help, and its headings.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "support/did_you_mean.hpp"

namespace bertcl::quant {

/// The heading in the help of the options that are added while it lives.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, const std::string& heading)
      : defaults_(*command.option_defaults()), before_(defaults_.get_group()) {
    defaults_.group(heading);
  }
  ~OptionGroup() { defaults_.group(before_); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  CLI::OptionDefaults& defaults_;
  const std::string before_;
};

/// One of `values`, which the help shows as "a|b", with the default.
inline CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& values) {
  const auto check = [values](const std::string& value) -> std::string {
    if (std::ranges::find(values, value) != values.end()) return "";
    return fmt::format("unknown '{}'{}", value, suggestion(value, values));
  };
  return option->check(CLI::Validator(check, ""))
      ->type_name(fmt::format("{}", fmt::join(values, "|")))
      ->capture_default_str();
}

/// A T from `least` to `most`, in decimal; `wanted` ends the message about anything else: "'x' is
/// not a number".
template <class T>
CLI::Option* check_number(CLI::Option* option, T least, T most, const std::string& wanted) {
  const auto check = [=](std::string& text) -> std::string {
    T value{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range && rest == end)
      return fmt::format("'{}' is out of range", text);
    if (error != std::errc{} || rest != end || !(value >= least && value <= most))
      return fmt::format("'{}' is not {}", text, wanted);
    // The parser would read 010 as octal.
    if constexpr (std::is_integral_v<T>) text = fmt::to_string(value);
    return "";
  };
  return option->transform(CLI::Validator(check, ""));
}

template <class T>
struct NumberOf {
  using type = T;
};
template <class T>
struct NumberOf<std::optional<T>> {
  using type = T;
};
/// T, or what a std::optional holds.
template <class T>
using Number = typename NumberOf<T>::type;

/// Adds an option for a T, a number or an optional one; the help shows the default.
template <class T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value,
                        const std::string& help, const std::string& type, Number<T> least,
                        Number<T> most, const std::string& condition = "") {
  CLI::Option* option = command.add_option(name, value, help)->type_name(type);
  if constexpr (std::is_same_v<T, Number<T>>) option->capture_default_str();
  const char* kind = std::is_integral_v<Number<T>> ? "a whole number" : "a number";
  return check_number<Number<T>>(option, least, most, kind + condition);
}

template <class T>
CLI::Option* any_number(CLI::App& command, const std::string& name, T& value,
                        const std::string& help, const std::string& type = "N") {
  using Limits = std::numeric_limits<Number<T>>;
  return add_number(command, name, value, help, type, Limits::lowest(), Limits::max());
}

/// Above 0.
template <class T>
CLI::Option* positive(CLI::App& command, const std::string& name, T& value, const std::string& help,
                      const std::string& type = "N") {
  using Limits = std::numeric_limits<Number<T>>;
  const Number<T> least = Limits::is_integer ? Number<T>{1} : Limits::denorm_min();
  return add_number(command, name, value, help, type, least, Limits::max(), " above 0");
}

/// Whole numbers above 0, separated by commas.
inline CLI::Option* positive_list(CLI::App& command, const std::string& name,
                                  std::vector<int>& values, const std::string& help) {
  CLI::Option* option = command.add_option(name, values, help)
                            ->delimiter(',')
                            ->allow_extra_args(false)
                            ->type_name("N,...");
  return check_number(option, 1, std::numeric_limits<int>::max(), "a whole number above 0");
}

/// 0 or more.
template <class T>
CLI::Option* not_negative(CLI::App& command, const std::string& name, T& value,
                          const std::string& help, const std::string& type = "N") {
  using Limits = std::numeric_limits<Number<T>>;
  return add_number(command, name, value, help, type, Number<T>{0}, Limits::max(), ", 0 or more");
}

template <class T>
CLI::Option* in_range(CLI::App& command, const std::string& name, T& value, Number<T> least,
                      Number<T> most, const std::string& help, const std::string& type = "N") {
  return add_number(command, name, value, help, type, least, most,
                    fmt::format(" from {} to {}", least, most));
}

}  // namespace bertcl::quant
