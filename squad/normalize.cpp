// SPDX-License-Identifier: Apache-2.0
// Normalization of answers and the scores of one pair of texts.
#include <algorithm>
#include <iterator>

#include "squad/metrics.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::squad {
namespace {

/// string.punctuation of Python: the 32 ASCII characters.
bool is_ascii_punctuation(char c) {
  return static_cast<unsigned char>(c) < 0x80 &&
         text::is_bert_punctuation(static_cast<unsigned char>(c));
}

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

/// re.sub(r'\b(a|an|the)\b', ' ', text)
std::string replace_articles(std::string_view text) {
  std::string result;
  std::size_t word_begin = 0;  // of the run of word characters before `position`
  const auto close_word = [&](std::size_t end) {
    const std::string_view word = text.substr(word_begin, end - word_begin);
    result += is_article(word) ? std::string_view(" ") : word;
  };
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    if (text::is_word_character(text::next_code_point(text, position))) continue;
    close_word(begin);
    result += text.substr(begin, position - begin);
    word_begin = position;
  }
  close_word(text.size());
  return result;
}

/// str.split() of a normalized text, sorted.
std::vector<std::string_view> sorted_words(std::string_view normalized) {
  std::vector<std::string_view> words;
  while (!normalized.empty()) {
    const std::size_t end = std::min(normalized.find(' '), normalized.size());
    words.push_back(normalized.substr(0, end));
    normalized.remove_prefix(std::min(end + 1, normalized.size()));
  }
  std::ranges::sort(words);
  return words;
}

double f1_of_words(const std::vector<std::string_view>& predicted,
                   const std::vector<std::string_view>& expected) {
  std::vector<std::string_view> common;
  std::set_intersection(predicted.begin(), predicted.end(), expected.begin(), expected.end(),
                        std::back_inserter(common));
  if (common.empty()) return 0.0;
  const auto same = static_cast<double>(common.size());
  const double precision = same / static_cast<double>(predicted.size());
  const double recall = same / static_cast<double>(expected.size());
  return (2 * precision * recall) / (precision + recall);
}

}  // namespace

std::string normalize_answer(std::string_view answer) {
  std::string lowered = text::lower(answer);
  std::erase_if(lowered, is_ascii_punctuation);
  const std::string without_articles = replace_articles(lowered);
  std::string result;
  bool space = false;
  for (std::size_t position = 0; position < without_articles.size();) {
    const std::size_t begin = position;
    if (text::is_space(text::next_code_point(without_articles, position))) {
      space = true;
      continue;
    }
    if (space && !result.empty()) result += ' ';
    space = false;
    result.append(without_articles, begin, position - begin);
  }
  return result;
}

double exact_score(std::string_view prediction, std::string_view reference) {
  return normalize_answer(prediction) == normalize_answer(reference) ? 1.0 : 0.0;
}

double f1_score(std::string_view prediction, std::string_view reference) {
  const std::string predicted = normalize_answer(prediction);
  const std::string expected = normalize_answer(reference);
  return f1_of_words(sorted_words(predicted), sorted_words(expected));
}

double f1_score_v2(std::string_view prediction, std::string_view reference) {
  const std::string predicted = normalize_answer(prediction);
  const std::string expected = normalize_answer(reference);
  if (predicted.empty() || expected.empty()) return predicted == expected ? 1.0 : 0.0;
  return f1_of_words(sorted_words(predicted), sorted_words(expected));
}

}  // namespace bertcl::squad
