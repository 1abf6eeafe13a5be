// SPDX-License-Identifier: Apache-2.0
// From text to tokens, with a cache of words.
#include "text/pipeline/pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <functional>

#include "text/pipeline/properties.hpp"

namespace bertcl::text {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// The tokens of words seen before. A word has one place, where a later one replaces it. A thread
/// that sees few words keeps a small cache: servers have many threads.
class WordCache {
 public:
  static constexpr std::size_t kLongest = 64;  // bytes

  struct Entry {
    std::uint64_t owner = 0;  // which pipeline's tokens these are
    std::string word;
    std::vector<Token> tokens;
  };

  /// Where `word` is if it is there.
  Entry& place_of(std::string_view word) {
    return entries_[std::hash<std::string_view>{}(word) & (entries_.size() - 1)];
  }
  /// Where to put a word that was not found.
  Entry& new_place_of(std::string_view word) {
    if (++missed_ > entries_.size() && entries_.size() < kMostWords) grow();
    return place_of(word);
  }

  std::vector<Token> uncached;

 private:
  static constexpr std::size_t kFewestWords = 1 << 6, kMostWords = 1 << 14;

  void grow() {
    std::vector<Entry> before(4 * entries_.size());
    before.swap(entries_);
    for (Entry& entry : before)
      if (entry.owner != 0) place_of(entry.word) = std::move(entry);
    missed_ = 0;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(kFewestWords);
  std::size_t missed_ = 0;  // since it last grew
};

/// Bytes of spaces at the ends of a token, which `process_offsets` of the library's
/// src/pre_tokenizers/byte_level.rs takes off.
struct Blanks {
  int left = 0, right = 0;
};

Blanks blanks_of(std::string_view token) {
  Blanks blanks;
  bool begun = false;
  for (std::size_t position = 0; position < token.size();) {
    const char32_t c = next_code_point(token, position);
    const bool blank = c == 0x120 || is_white_space(c);
    if (!begun && blank) ++blanks.left;
    begun = begun || !blank;
    blanks.right = blank ? blanks.right + 1 : 0;
  }
  return blanks;
}

void trim_span(Span& span, Blanks blanks, std::string_view text, bool first, bool added_space) {
  if (first && added_space && blanks.left == 1) blanks.left = 0;
  for (; blanks.left > 0 && span.begin < span.end; --blanks.left) {
    ++span.begin;
    while (span.begin < span.end && is_inside(text, span.begin)) ++span.begin;
  }
  std::uint32_t end = span.end;
  for (; blanks.right > 0 && end > 0; --blanks.right)
    end = static_cast<std::uint32_t>(character_begin(text, end - 1));
  if (blanks.right == 0) span.end = std::max(end, span.begin);
}

}  // namespace

Pipeline::Pipeline() : serial_(next_serial()) {}

Parts Pipeline::split(std::string_view text) const {
  Parts parts(text);
  added.find(parts, false);
  if (normalizer) normalizer(parts);
  added.find(parts, true);
  if (pre_tokenizer) pre_tokenizer(parts);
  return parts;
}

const std::vector<Token>& Pipeline::tokens_of(std::string_view word) const {
  static thread_local WordCache cache;
  if (word.size() > WordCache::kLongest) {
    cache.uncached.clear();
    model->tokenize(word, cache.uncached);
    return cache.uncached;
  }
  const WordCache::Entry& found = cache.place_of(word);
  if (found.owner == serial_ && found.word == word) return found.tokens;
  WordCache::Entry& entry = cache.new_place_of(word);
  entry.owner = 0;  // so that nothing is found there if the model throws
  entry.tokens.clear();
  model->tokenize(word, entry.tokens);
  entry.word = word;
  entry.owner = serial_;
  return entry.tokens;
}

std::optional<std::int32_t> Pipeline::id_of(std::string_view token) const {
  for (const AddedToken& other : added.tokens())
    if (other.content == token) return other.id;
  return vocabulary.find(token);
}

const std::string* Pipeline::token_of(std::int32_t id) const {
  for (const AddedToken& token : added.tokens())
    if (token.id == id) return &token.content;
  const bool known = id >= 0 && static_cast<std::size_t>(id) < vocabulary.size();
  return known ? &vocabulary.at(id) : nullptr;
}

std::size_t Pipeline::size() const {
  std::size_t size = vocabulary.size();
  for (const AddedToken& token : added.tokens())
    size = std::max(size, static_cast<std::size_t>(token.id) + 1);
  return size;
}

std::vector<std::int32_t> Pipeline::encode_ids(std::string_view text) const {
  const Parts parts = split(text);
  std::vector<std::int32_t> ids;
  ids.reserve(parts.parts.size());
  for (const Part& part : parts.parts) {
    if (part.token >= 0) {
      ids.push_back(part.token);
    } else if (part.begin < part.end) {
      for (const Token& token : tokens_of(parts.text_of(part))) ids.push_back(token.id);
    }
  }
  return ids;
}

/// Those of the token that the model makes of a part of the normalized text.
std::string_view Pipeline::characters_of(std::int32_t id, std::string_view text) const {
  return unknown_as_text && id == model->unknown() ? text : std::string_view(vocabulary.at(id));
}

Encoding Pipeline::encode(std::string_view text) const {
  const Parts parts = split(text);
  Encoding encoding;
  std::uint32_t word = 0;
  const auto add = [&](std::int32_t id, std::uint32_t begin, std::uint32_t end, bool is_added) {
    Span span = parts.original(begin, end);
    if (!post_processor.trims.empty()) {
      const auto taken = std::string_view(parts.text).substr(begin, end - begin);
      const Blanks blanks = blanks_of(is_added ? taken : characters_of(id, taken));
      for (const bool added_space : post_processor.trims) {
        const bool first = encoding.ids.empty() || span.begin == 0;
        trim_span(span, blanks, text, first, added_space);
      }
    }
    encoding.ids.push_back(id);
    encoding.spans.push_back(span);
    encoding.words.push_back(word);
  };
  for (const Part& part : parts.parts) {
    if (part.token >= 0) {
      add(part.token, part.begin, part.end, true);
    } else if (part.begin < part.end) {
      for (const auto& [id, begin, end] : tokens_of(parts.text_of(part)))
        add(id, part.begin + begin, part.begin + std::max(end, begin + 1), false);
    }
    ++word;
  }
  return encoding;
}

}  // namespace bertcl::text
