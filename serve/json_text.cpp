// SPDX-License-Identifier: Apache-2.0
// Floats as JSON, and bytes as base64.
#include "serve/json_text.hpp"

#include <openssl/evp.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace bertcl::serve {

void append_float(std::string& text, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text.append(digits, end);
}

void append_floats(std::string& text, std::span<const float> values) {
  append_list(text, values.size(), [&](std::size_t i) { append_float(text, values[i]); });
}

std::string base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and a terminating zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(length);
  return text;
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace bertcl::serve
