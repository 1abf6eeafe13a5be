// SPDX-License-Identifier: Apache-2.0
// Bytes as text.
#include "text/base/base64.hpp"

#include <openssl/evp.h>

namespace bertcl::text {

std::string base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and a terminating zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace bertcl::text
