// SPDX-License-Identifier: Apache-2.0
// Floats as JSON and as base64.
#include "serve/json_text.hpp"

#include <openssl/evp.h>

#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

namespace bertcl::serve {

static_assert(std::endian::native == std::endian::little);

void append_float(std::string& text, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text.append(digits, end);
}

void append_floats(std::string& text, std::span<const float> values) {
  text += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    append_float(text, values[i]);
  }
  text += ']';
}

std::string base64(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
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
