// SPDX-License-Identifier: Apache-2.0
// Alignment of an answer made of word pieces with the original text.
#include <algorithm>
#include <optional>

#include "squad/predictions.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::squad {
namespace {

/// Byte offset of each code point that is not a space.
std::vector<std::size_t> offsets_without_spaces(std::string_view text) {
  std::vector<std::size_t> offsets;
  for (std::size_t position = 0; position < text.size();) {
    if (text[position] != ' ') offsets.push_back(position);
    text::next_code_point(text, position);
  }
  return offsets;
}

std::size_t last_code_point(std::string_view text) {
  std::size_t last = 0;
  for (std::size_t position = 0; position < text.size();) {
    last = position;
    text::next_code_point(text, position);
  }
  return last;
}

/// Offset past what these word pieces spell in words joined by spaces; an empty one is any word.
std::size_t end_of_pieces(std::string_view words, std::span<const std::string_view> pieces) {
  std::size_t end = 0;
  for (const std::string_view piece : pieces) {
    const bool continues = piece.starts_with("##");
    if (!continues && end > 0) ++end;  // the space
    end = piece.empty() ? words.find(' ', end) : end + piece.size() - (continues ? 2 : 0);
    end = std::min(end, words.size());
  }
  return end;
}

}  // namespace

std::optional<Span> find_final_text(std::string_view prediction, std::string_view original,
                                    const text::BasicTokenizer& tokenizer,
                                    std::span<const std::string_view> before) {
  if (prediction.empty()) return std::nullopt;
  std::string tokenized;
  for (const std::string& word : tokenizer.tokenize(original)) {
    if (!tokenized.empty()) tokenized += ' ';
    tokenized += word;
  }
  const std::size_t first = tokenized.find(prediction, end_of_pieces(tokenized, before));
  if (first == std::string::npos) return std::nullopt;
  const std::size_t last = first + last_code_point(prediction);

  // Without spaces both texts have the same characters, if no character was dropped or changed
  // its length on the way; then position counts as identity.
  const std::vector<std::size_t> in_tokenized = offsets_without_spaces(tokenized);
  const std::vector<std::size_t> in_original = offsets_without_spaces(original);
  if (in_tokenized.size() != in_original.size()) return std::nullopt;
  const auto rank = [&](std::size_t offset) -> std::size_t {
    const auto found = std::ranges::lower_bound(in_tokenized, offset);
    const bool exact = found != in_tokenized.end() && *found == offset;
    return exact ? static_cast<std::size_t>(found - in_tokenized.begin()) : in_tokenized.size();
  };
  const std::size_t first_rank = rank(first);
  const std::size_t last_rank = rank(last);
  if (std::max(first_rank, last_rank) >= in_original.size()) return std::nullopt;
  std::size_t end = in_original[last_rank];
  text::next_code_point(original, end);
  return Span{in_original[first_rank], end};
}

}  // namespace bertcl::squad
