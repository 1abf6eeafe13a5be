// SPDX-License-Identifier: Apache-2.0
// Checks of keys, and their comparison.
#include "serve/http/api_key.hpp"

#include <openssl/crypto.h>
#include <strings.h>

#include <algorithm>
#include <string_view>

namespace bertcl::serve {
namespace {

bool is_equal(std::string_view a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), b.size()) == 0;
}

}  // namespace

std::string key_error(const std::string& key) {
  if (key.empty()) return "the key is empty";
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(key, is_control)) return "the key has control characters";
  if (key.front() == ' ' || key.back() == ' ') return "the key begins or ends with a space";
  return "";
}

bool has_key(const std::string& authorization, const std::string& key) {
  constexpr std::string_view scheme = "Bearer ";  // in any case (RFC 9110, 11.1)
  if (strncasecmp(authorization.c_str(), scheme.data(), scheme.size()) != 0) return false;
  const std::string_view given = std::string_view(authorization).substr(scheme.size());
  return is_equal(given, key);
}

}  // namespace bertcl::serve
