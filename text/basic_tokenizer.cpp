// SPDX-License-Identifier: Apache-2.0
// Text -> words: cleaning, CJK, white space, case and accents, punctuation.
#include "text/base/unicode.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

enum class Action { keep, drop, split };

/// What the cleaning step does with a character.
/// U+2028 and U+2029 pass the cleaning of the reference, and its str.split() splits at them.
Action clean(char32_t c) {
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Action::split;
  if (c < 0x80) return c < 0x20 || c == 0x7F ? Action::drop : Action::keep;
  if (c == 0xFFFD || is_other_category(c)) return Action::drop;
  return is_space(c) ? Action::split : Action::keep;
}

}  // namespace

BasicTokenizer::BasicTokenizer(const TokenizerOptions& options)
    : lower_case_(options.lower_case.value_or(true)),
      strip_accents_(options.strip_accents.value_or(lower_case_)),
      split_cjk_(options.split_cjk.value_or(true)) {}

std::vector<std::string> BasicTokenizer::tokenize(std::string_view text) const {
  std::vector<std::string> words;
  std::string chunk;  // characters since the last split
  const auto flush = [&] {
    if (!chunk.empty()) add_words(chunk, words);
    chunk.clear();
  };
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    const char32_t c = next_code_point(text, position);
    const Action action = clean(c);
    if (action == Action::drop) continue;
    if (action == Action::split) {
      flush();
      continue;
    }
    const bool alone = split_cjk_ && c >= 0x80 && is_cjk_ideograph(c);
    if (alone) flush();
    chunk.append(text.substr(begin, position - begin));
    if (alone) flush();
  }
  flush();
  return words;
}

/// Lower-cases one chunk without white space, drops its accents, as the options say, and splits it
/// at punctuation.
void BasicTokenizer::add_words(std::string_view chunk, std::vector<std::string>& words) const {
  std::string plain = lower_case_ ? lower(chunk) : std::string(chunk);
  if (strip_accents_ && !is_ascii(plain)) plain = without_accents(plain);
  bool open = false;  // the last word may still grow
  for (std::size_t position = 0; position < plain.size();) {
    const std::size_t begin = position;
    const char32_t c = next_code_point(plain, position);
    const bool punctuation = is_bert_punctuation(c);
    if (punctuation || !open) words.emplace_back();
    words.back().append(plain, begin, position - begin);
    open = !punctuation;
  }
}

}  // namespace bertcl::text
