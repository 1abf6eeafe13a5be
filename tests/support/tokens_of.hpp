// SPDX-License-Identifier: Apache-2.0
// Tokens of a text as strings.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// Word pieces that continue a word begin with "##".
inline std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const std::int32_t id : tokenizer.encode(text)) tokens.push_back(tokenizer.token(id));
  return tokens;
}

}  // namespace bertcl::text
