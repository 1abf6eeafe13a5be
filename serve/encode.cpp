// SPDX-License-Identifier: Apache-2.0
// Truncation of texts and pairs.
#include "serve/encode.hpp"

#include <algorithm>

#include "bertcl/error.hpp"

namespace bertcl::serve {
namespace {

std::size_t room_beside(std::size_t specials, std::size_t limit) {
  if (limit <= specials) throw Error("the model's maximum sequence length leaves no room for text");
  return limit - specials;
}

}  // namespace

Sequence with_token_types(text::Tokens ids, std::size_t second) {
  Sequence sequence{{ids.begin(), ids.end()}};
  if (second < ids.size()) {
    sequence.token_type_ids.resize(second);
    sequence.token_type_ids.resize(ids.size(), 1);
  }
  return sequence;
}

Sequence encode_text(const text::Tokenizer& tokenizer, std::string_view text, std::size_t limit,
                     const Truncation& truncation) {
  const text::SpecialTokens& special = tokenizer.special();
  const std::vector<std::int32_t> pieces = tokenizer.encode(text);
  const std::size_t room = room_beside(special.count(), limit);
  if (pieces.size() > room && !truncation.truncate)
    throw TooLong{pieces.size() + special.count(), limit};
  const auto all = text::add_special_tokens(special, pieces, std::nullopt, room,
                                            truncation.truncates_left(tokenizer));
  return with_token_types(all.ids, all.second);
}

Sequence encode_pair(const text::Tokenizer& tokenizer, text::Tokens a, std::string_view second,
                     std::size_t limit, const Truncation& truncation) {
  const text::SpecialTokens& special = tokenizer.special();
  const std::vector<std::int32_t> pieces = tokenizer.encode(second);
  const bool left = truncation.truncates_left(tokenizer);
  const std::size_t most =
      std::min(pieces.size(), truncation.max_second_tokens.value_or(pieces.size()));
  const auto b = left ? text::Tokens(pieces).last(most) : text::Tokens(pieces).first(most);
  const std::size_t room = room_beside(special.pair_count(), limit);
  if (a.size() + b.size() > room && !truncation.truncate)
    throw TooLong{a.size() + b.size() + special.pair_count(), limit};
  const text::EncodedInput all = text::add_special_tokens(special, a, b, room, left);
  return with_token_types(all.ids, all.second);
}

}  // namespace bertcl::serve
