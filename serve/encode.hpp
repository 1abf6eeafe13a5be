// SPDX-License-Identifier: Apache-2.0
// Texts and pairs as sequences, cut on either side.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "serve/batcher.hpp"
#include "text/tokenizer.hpp"
#include "text/truncation.hpp"

namespace bertcl::serve {

/// Which tokens of a text that is too long are dropped: the last, or the first.
enum class Side { right, left };

/// How long texts are cut; without `truncate` they are refused.
struct Truncation {
  bool truncate = false;
  std::optional<Side> side = {};                      ///< none: that of the tokenizer
  std::optional<std::size_t> max_second_tokens = {};  ///< kept of a pair's second text

  bool truncates_left(const text::Tokenizer& tokenizer) const {
    return side ? *side == Side::left : tokenizer.truncates_left();
  }
};

/// Thrown without `truncate`.
struct TooLong {
  std::size_t tokens = 0, limit = 0;
};

/// Tokens of which those from `second` on are segment 1.
Sequence with_token_types(text::Tokens ids, std::size_t second);

/// [CLS] text [SEP], or what the tokenizer has for them, of at most `limit` tokens. Throws TooLong.
Sequence encode_text(const text::Tokenizer& tokenizer, std::string_view text, std::size_t limit,
                     const Truncation& truncation);

/// [CLS] first [SEP] second [SEP]; the longer text loses tokens until both fit. Throws TooLong. The
/// first is given in tokens, since many pairs may have it.
Sequence encode_pair(const text::Tokenizer& tokenizer, text::Tokens first, std::string_view second,
                     std::size_t limit, const Truncation& truncation);

}  // namespace bertcl::serve
