// SPDX-License-Identifier: Apache-2.0
// Single texts, pairs, windows, sentences in words, masked texts.
#include "tasks/features.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "support/ceil_div.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::tasks {
namespace {

using Ids = std::vector<std::int32_t>;

/// [CLS] pieces [SEP], of all pieces.
Sequence add_special_tokens(text::Tokens pieces, const text::Tokenizer& tokenizer) {
  return {
      text::add_special_tokens(tokenizer.special(), pieces, std::nullopt, pieces.size(), false)};
}

/// `pieces` in parts of at most `max_length`, as few as possible, of equal length but for one.
std::vector<std::span<const std::int32_t>> parts_of(std::span<const std::int32_t> pieces,
                                                    std::size_t max_length) {
  const std::size_t count = std::max<std::size_t>(1, ceil_div(pieces.size(), max_length));
  std::vector<std::span<const std::int32_t>> parts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * pieces.size() / count, end = (i + 1) * pieces.size() / count;
    parts.push_back(pieces.subspan(begin, end - begin));
  }
  return parts;
}

/// `hidden` counts the hidden tokens of a text.
void hide_tokens(Sequence& sequence, const text::Tokenizer& tokenizer, std::mt19937_64& random,
                 std::size_t& hidden) {
  const std::int32_t mask = tokenizer.mask_id();
  const text::SpecialTokens& special = tokenizer.special();
  // The distributions of the standard library differ between its implementations.
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::vector<std::size_t> places(sequence.length() - special.count());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i + special.before.size();
  const auto wanted =
      static_cast<std::size_t>(std::lround(0.15 * static_cast<double>(sequence.length())));
  const std::size_t count = std::min(places.size(), std::max<std::size_t>(1, wanted));
  for (std::size_t i = 0; i < count; ++i)
    std::swap(places[i], places[i + below(places.size() - i)]);
  places.resize(count);
  std::ranges::sort(places);
  for (const std::size_t place : places) {
    sequence.targets.push_back(sequence.ids[place]);
    sequence.words.push_back(hidden++);
    const std::size_t die = below(10);
    if (die < 8) {
      sequence.ids[place] = mask;
    } else if (die == 8) {
      sequence.ids[place] = static_cast<std::int32_t>(below(tokenizer.vocabulary_size()));
    }
  }
  sequence.places = std::move(places);
}

}  // namespace

std::vector<text::Row> rows_of(std::span<const Sequence> sequences) {
  std::vector<text::Row> rows;
  for (const Sequence& sequence : sequences) rows.push_back({sequence.ids, sequence.second});
  return rows;
}

std::size_t room(int max_length, std::size_t specials) {
  if (max_length <= static_cast<int>(specials)) {
    fail(
        "sequences of {} tokens leave no room for a text beside {} special tokens; "
        "raise {}, or, if that is the model's limit, export it with longer sequences",
        max_length, specials, option_name("max-seq-length"));
  }
  return static_cast<std::size_t>(max_length) - specials;
}

std::string embedded_text(std::string_view text, bool lower_case,
                          const text::Tokenizer& tokenizer) {
  return lower_case ? tokenizer.lower_cased(text) : std::string(text);
}

Sequence encode_text(std::string_view text, const text::Tokenizer& tokenizer, int max_length) {
  return encode_pieces(tokenizer.encode(text), tokenizer, max_length);
}

Sequence encode_pieces(text::Tokens pieces, const text::Tokenizer& tokenizer, int max_length,
                       std::optional<bool> truncates_left) {
  const text::SpecialTokens& special = tokenizer.special();
  return {text::add_special_tokens(special, pieces, std::nullopt, room(max_length, special.count()),
                                   truncates_left.value_or(tokenizer.truncates_left()))};
}

Sequence encode_embedded(std::string_view text, bool lower_case, std::size_t part,
                         const text::Tokenizer& tokenizer, int max_length) {
  Sequence sequence =
      encode_text(embedded_text(text, lower_case, tokenizer), tokenizer, max_length);
  sequence.part = part;
  return sequence;
}

std::vector<Sequence> encode_windows(std::string_view text, const text::Tokenizer& tokenizer,
                                     int max_length) {
  const Ids pieces = tokenizer.encode(text);
  std::vector<Sequence> sequences;
  for (const auto part : parts_of(pieces, room(max_length, tokenizer.special().count())))
    sequences.push_back(add_special_tokens(part, tokenizer));
  return sequences;
}

Sequence encode_pair(std::string_view first, std::string_view second,
                     const text::Tokenizer& tokenizer, int max_length) {
  return encode_pair(tokenizer.encode(first), tokenizer.encode(second), tokenizer, max_length);
}

Sequence encode_text(std::string_view text, const std::optional<std::string>& second,
                     const text::Tokenizer& tokenizer, int max_length) {
  return second ? encode_pair(text, *second, tokenizer, max_length)
                : encode_text(text, tokenizer, max_length);
}

Sequence encode_pair(text::Tokens first, text::Tokens second, const text::Tokenizer& tokenizer,
                     int max_length, std::optional<bool> truncates_left) {
  const text::SpecialTokens& special = tokenizer.special();
  return {text::add_special_tokens(special, first, second, room(max_length, special.pair_count()),
                                   truncates_left.value_or(tokenizer.truncates_left()))};
}

std::vector<Sequence> encode_words(std::span<const std::string> words,
                                   const text::Tokenizer& tokenizer, int max_length) {
  const std::size_t fits = room(max_length, tokenizer.special().count());
  std::vector<Sequence> sequences;
  Ids pieces;
  Sequence open;  // all but its ids
  const auto close = [&] {
    if (pieces.empty()) return;
    Sequence sequence = add_special_tokens(pieces, tokenizer);
    sequence.places = std::move(open.places);
    sequence.words = std::move(open.words);
    sequence.cut = open.cut;
    sequences.push_back(std::move(sequence));
    pieces.clear();
    open = {};
  };
  for (std::size_t word = 0; word < words.size(); ++word) {
    const Ids own = tokenizer.encode_word(words[word]);
    if (own.empty()) continue;
    const std::size_t kept = std::min(own.size(), fits);
    if (pieces.size() + kept > fits) close();
    open.places.push_back(pieces.size() + tokenizer.special().before.size());
    open.words.push_back(word);
    open.cut += own.size() - kept;
    pieces.insert(pieces.end(), own.begin(), own.begin() + static_cast<long>(kept));
  }
  close();
  return sequences;
}

std::vector<Sequence> encode_masked(std::string_view text, const text::Tokenizer& tokenizer,
                                    int max_length, std::uint64_t seed) {
  std::vector<Sequence> sequences = encode_windows(text, tokenizer, max_length);
  if (sequences.front().length() == tokenizer.special().count()) return {};  // no word pieces
  std::mt19937_64 random(seed);
  std::size_t hidden = 0;
  for (Sequence& sequence : sequences) hide_tokens(sequence, tokenizer, random, hidden);
  return sequences;
}

}  // namespace bertcl::tasks
