// SPDX-License-Identifier: Apache-2.0
// Magnitudes as decimal text.
#pragma once
#include <string>
#include <string_view>

namespace bertcl::quant {

/// As Python prints the float widened to double: the shortest text that reads back the same, with a
/// point or an exponent.
std::string decimal(float value);

/// Parses the whole text as a number. Throws Error if it is not one.
float parse_decimal(std::string_view text, const std::string& tensor);

}  // namespace bertcl::quant
