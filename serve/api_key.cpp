// SPDX-License-Identifier: Apache-2.0
// Checks of keys, and their comparison.
#include "serve/api_key.hpp"

#include <openssl/crypto.h>
#include <strings.h>

#include <algorithm>
#include <string_view>

namespace bertcl::serve {

std::string fault_of_key(const std::string& key) {
  if (key.empty()) return "the key is empty";
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(key, is_control)) return "the key has control characters";
  if (key.front() == ' ' || key.back() == ' ') return "the key begins or ends with a space";
  return "";
}

bool shows_key(const std::string& authorization, const std::string& key) {
  constexpr std::string_view scheme = "Bearer ";  // in any case (RFC 9110, 11.1)
  return authorization.size() == scheme.size() + key.size() &&
         strncasecmp(authorization.data(), scheme.data(), scheme.size()) == 0 &&
         CRYPTO_memcmp(authorization.data() + scheme.size(), key.data(), key.size()) == 0;
}

}  // namespace bertcl::serve
