// SPDX-License-Identifier: Apache-2.0
// Numbers as text.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace bertcl {

/// The whole text as a decimal number; none if it is not one, or is out of T's range.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace bertcl
