// SPDX-License-Identifier: Apache-2.0
// Truncation of texts and pairs. What is cut on the right is cut as tasks/features.cpp does it.
#include "serve/encode.hpp"

#include <algorithm>

#include "bertcl/error.hpp"
#include "text/truncation.hpp"

namespace bertcl::serve {
namespace {

using Pieces = std::span<const std::int32_t>;

void append(Sequence& to, Pieces pieces) {
  to.ids.insert(to.ids.end(), pieces.begin(), pieces.end());
}

Pieces kept(Pieces pieces, std::size_t count, bool cuts_left) {
  return cuts_left ? pieces.last(count) : pieces.first(count);
}

std::size_t room_beside(std::size_t specials, std::size_t limit) {
  if (limit <= specials) throw Error("the model's longest sequence has no room for a text");
  return limit - specials;
}

}  // namespace

Sequence encode_text(const text::Tokenizer& tokenizer, std::string_view text, std::size_t limit,
                     const Truncation& truncation) {
  const text::SpecialTokens& special = tokenizer.special();
  const std::vector<std::int32_t> pieces = tokenizer.encode(text);
  const std::size_t room = room_beside(special.count(), limit);
  if (pieces.size() > room && !truncation.truncate)
    throw TooLong{pieces.size() + special.count(), limit};
  Sequence sequence;
  append(sequence, special.before);
  append(sequence, kept(pieces, std::min(pieces.size(), room), truncation.cuts_left(tokenizer)));
  append(sequence, special.after);
  return sequence;
}

Sequence encode_pair(const text::Tokenizer& tokenizer, Pieces a, std::string_view second,
                     std::size_t limit, const Truncation& truncation) {
  const text::SpecialTokens& special = tokenizer.special();
  const std::vector<std::int32_t> pieces = tokenizer.encode(second);
  const std::size_t most = truncation.most_of_second.value_or(pieces.size());
  const Pieces b = kept(pieces, std::min(pieces.size(), most), truncation.cuts_left(tokenizer));
  const std::size_t room = room_beside(special.pair_count(), limit);
  if (a.size() + b.size() > room && !truncation.truncate)
    throw TooLong{a.size() + b.size() + special.pair_count(), limit};
  const auto [kept_a, kept_b] = text::kept_of_pair(a.size(), b.size(), room);
  Sequence sequence;
  append(sequence, special.pair_before);
  append(sequence, kept(a, kept_a, truncation.cuts_left(tokenizer)));
  append(sequence, special.pair_between);
  const std::size_t begin = sequence.ids.size();
  append(sequence, kept(b, kept_b, truncation.cuts_left(tokenizer)));
  append(sequence, special.pair_after);
  if (special.segments) {
    sequence.types.assign(sequence.ids.size(), 1);
    std::fill_n(sequence.types.begin(), special.second_begin(begin, sequence.ids.size()), 0);
  }
  return sequence;
}

}  // namespace bertcl::serve
