// SPDX-License-Identifier: Apache-2.0
// Magnitudes as decimal text.
#include "quant/tables/decimal.hpp"

#include <fmt/format.h>

#include "support/fail.hpp"
#include "support/parse_number.hpp"

namespace bertcl::quant {

std::string decimal(float value) {
  std::string text = fmt::format("{}", static_cast<double>(value));
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

float parse_decimal(std::string_view text, const std::string& tensor) {
  // Widened floats are written: their shortest text is one of doubles.
  if (const auto value = parse_number<double>(text)) return static_cast<float>(*value);
  fail("tensor '{}': '{:.60}' is not a number", tensor, text);
}

}  // namespace bertcl::quant
