// SPDX-License-Identifier: Apache-2.0
// Floats as JSON.
#include "serve/json_text.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "support/json_text.hpp"

namespace bertcl::serve {

void append_float(std::string& text, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text.append(digits, end);
}

void append_floats(std::string& text, std::span<const float> values) {
  append_list(text, values.size(), [&](std::size_t i) { append_float(text, values[i]); });
}

std::string dump(const nlohmann::ordered_json& json) { return bertcl::json_text(json); }

}  // namespace bertcl::serve
