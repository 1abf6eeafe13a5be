// SPDX-License-Identifier: Apache-2.0
// Magnitudes as decimal text.
#include "quant/tables/decimal.hpp"

#include <fmt/format.h>

#include <charconv>

#include "bertcl/error.hpp"

namespace bertcl::quant {

std::string decimal(float value) {
  std::string text = fmt::format("{}", static_cast<double>(value));
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

float parse_decimal(std::string_view text, const std::string& tensor) {
  double value = 0.0;  // widened floats are written: their shortest text is one of doubles
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("tensor '{}': '{:.60}' is not a number", tensor, text));
  return static_cast<float>(value);
}

}  // namespace bertcl::quant
