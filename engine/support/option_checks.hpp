// SPDX-License-Identifier: Apache-2.0
// Checks of option values with readable help, and its headings.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/comma_list.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"

namespace bertcl {

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

/// Puts the options that are added while it lives into a list of options of one kind.
class OptionMark {
 public:
  OptionMark(const CLI::App& command, std::vector<const CLI::Option*>& marked)
      : command_(command), marked_(marked), before_(std::ssize(command.get_options())) {}
  ~OptionMark() {
    const std::vector<const CLI::Option*> all = command_.get_options();
    marked_.insert(marked_.end(), all.begin() + before_, all.end());
  }
  OptionMark(const OptionMark&) = delete;
  OptionMark& operator=(const OptionMark&) = delete;

 private:
  const CLI::App& command_;
  std::vector<const CLI::Option*>& marked_;
  const std::ptrdiff_t before_;
};

/// Flags such as --yes,--no{false}, of which the last one given is told by set(bool); --yes=false
/// is --no. Unlike App::add_flag(), it leaves alone what no flag names.
template <class Set>
CLI::Option* add_switch(CLI::App& command, const std::string& names, Set set,
                        const std::string& help) {
  // CLI11 checks no such value, and versions of it count "yes" differently: it gets 1 or -1.
  const auto to_count = [](std::string& text) -> std::string {
    try {
      text = CLI::detail::to_flag_value(text) > 0 ? "1" : "-1";
      return "";
    } catch (const std::logic_error&) {
      return fmt::format("'{}' is neither true nor false", text);
    }
  };
  return command
      .add_flag_function(
          names, [set](std::int64_t count) { set(count > 0); }, help)
      ->take_last()
      ->transform(CLI::Validator(to_count, ""));
}

inline constexpr const char* kOneOf = "one of ";  // name of a validator, before "a|b"

/// One of `values`, which the help shows as "a|b", with the default; or a list of them.
inline CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& values,
                           bool is_list = false) {
  const auto check = [=](const std::string& text) -> std::string {
    for (const std::string& value : is_list ? comma_list(text) : std::vector{text})
      if (std::ranges::find(values, value) == values.end())
        return fmt::format("unknown value '{}'{}", value, suggestion(value, values));
    return "";
  };
  const std::string list = fmt::format("{}", fmt::join(values, "|"));
  return option->check(CLI::Validator(check, "", kOneOf + list))
      ->type_name(list)
      ->capture_default_str();
}

/// Names of values, in the order of the help.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
std::vector<std::string> names_of(const Choices<T>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

/// The value of one of these names.
template <class T>
T chosen(const Choices<T>& choices, const std::string& name) {
  for (const auto& [known, value] : choices)
    if (known == name) return value;
  fail("unknown value '{}'{}", name, suggestion(name, names_of(choices)));
}

/// A choice that sets something else than a string.
template <class T, class Set>
CLI::Option* add_choice(CLI::App& command, const std::string& name, const Choices<T>& choices,
                        Set set, const std::string& help) {
  return one_of(
      command.add_option_function<std::string>(
          name, [&choices, set](const std::string& text) { set(chosen(choices, text)); }, help),
      names_of(choices));
}

/// A list, with commas or by repetition, of which set() gets the elements. The parser's own
/// delimiter would drop empty ones.
template <class Set>
CLI::Option* add_list(CLI::App& command, const std::string& name, Set set, const std::string& type,
                      const std::string& help) {
  const auto split = [name, set](const std::vector<std::string>& texts) {
    std::vector<std::string> elements;
    for (const std::string& text : texts) {
      for (const std::string& element : comma_list(text)) {
        if (element.empty())
          throw CLI::ValidationError(name.substr(0, name.find(',')),
                                     fmt::format("empty element in '{}'", text));
        elements.push_back(element);
      }
    }
    set(elements);
  };
  return command.add_option_function<std::vector<std::string>>(name, split, help)
      ->allow_extra_args(false)
      ->type_name(type);
}

/// What keeps `text` from being a T from `min` to `max`, in decimal, which messages call `range`:
/// "'9' is out of range (2 to 8)"; "'x' is not an integer". "" if nothing does.
template <class T>
std::string number_error(std::string& text, T min, T max, const std::string& range) {
  T value{};
  const char* end = text.data() + text.size();
  const bool is_negative = std::is_unsigned_v<T> && text.starts_with('-');
  const auto [rest, error] = std::from_chars(text.data() + (is_negative ? 1 : 0), end, value);
  const std::string out_of_range =
      fmt::format("'{}' is out of range{}", text, range.empty() ? "" : " (" + range + ")");
  if (error == std::errc::result_out_of_range && rest == end) return out_of_range;
  bool is_finite = true;
  if constexpr (std::is_floating_point_v<T>) is_finite = std::isfinite(value);
  if (error != std::errc{} || rest != end || !is_finite)
    return fmt::format("'{}' is not {}", text, std::is_integral_v<T> ? "an integer" : "a number");
  if (is_negative || value < min || value > max) return out_of_range;
  // The parser would read 010 as octal.
  if constexpr (std::is_integral_v<T>) text = fmt::to_string(value);
  return "";
}

/// A T from `min` to `max`; see number_error().
template <class T>
CLI::Option* check_number(CLI::Option* option, T min, T max, const std::string& range) {
  const auto check = [=](std::string& text) { return number_error(text, min, max, range); };
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
                        const std::string& help, const std::string& type, Number<T> min,
                        Number<T> max, const std::string& range = "") {
  CLI::Option* option = command.add_option(name, value, help)->type_name(type);
  if constexpr (std::is_same_v<T, Number<T>>) option->capture_default_str();
  return check_number<Number<T>>(option, min, max, range);
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
  const Number<T> min = Limits::is_integer ? Number<T>{1} : Limits::denorm_min();
  return add_number(command, name, value, help, type, min, Limits::max(),
                    Limits::is_integer ? "1 or more" : "above 0");
}

/// Integers from `min` to `max`, with commas or by repetition; see number_error().
template <class T>
CLI::Option* number_list(CLI::App& command, const std::string& name, std::vector<T>& values,
                         const std::string& help, std::type_identity_t<T> min,
                         std::type_identity_t<T> max, const std::string& range) {
  const auto set = [&values](const std::vector<std::string>& elements) {
    values.clear();
    for (const std::string& element : elements)
      values.push_back(static_cast<T>(std::stoll(element)));
  };
  const auto check = [=](const std::string& text) -> std::string {
    for (std::string element : comma_list(text))
      if (std::string error = number_error<T>(element, min, max, range); !error.empty())
        return error;
    return "";
  };
  return add_list(command, name, set, "N,...", help)->check(CLI::Validator(check, ""));
}

/// 0 or more.
template <class T>
CLI::Option* not_negative(CLI::App& command, const std::string& name, T& value,
                          const std::string& help, const std::string& type = "N") {
  using Limits = std::numeric_limits<Number<T>>;
  return add_number(command, name, value, help, type, Number<T>{0}, Limits::max(), "0 or more");
}

template <class T>
CLI::Option* in_range(CLI::App& command, const std::string& name, T& value, Number<T> min,
                      Number<T> max, const std::string& help, const std::string& type = "N") {
  return add_number(command, name, value, help, type, min, max, fmt::format("{} to {}", min, max));
}

}  // namespace bertcl
