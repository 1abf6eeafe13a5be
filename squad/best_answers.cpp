// SPDX-License-Identifier: Apache-2.0
// Answers and scores as Hugging Face's question-answering pipeline finds them.
#include "squad/best_answers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "text/base/unicode.hpp"

namespace bertcl::squad {
namespace {

/// Softmax over the document's tokens and the first one of the window, which stands for no answer.
std::vector<float> probabilities(std::span<const float> logits, const Feature& feature) {
  constexpr float kNever = -10000.0F;  // transformers' logit of other tokens
  std::vector<float> result(feature.length(), kNever);
  for (std::size_t i = 0; i < result.size(); ++i)
    if ((i == 0 || feature.in_document(i)) && std::isfinite(logits[i])) result[i] = logits[i];
  const float largest = *std::ranges::max_element(result);
  double total = 0;
  for (float& value : result) {
    value = std::exp(value - largest);
    total += value;
  }
  for (float& value : result) value = static_cast<float>(value / total);
  return result;
}

struct TokenSpan {
  float score;
  std::size_t first, last;  // positions in the window, both inclusive
  bool operator>(const TokenSpan& other) const { return score > other.score; }
};

/// The `count` likeliest spans of at most `longest` tokens of the document, best first.
std::vector<TokenSpan> likeliest(std::span<const float> start, std::span<const float> end,
                                 const Feature& feature, std::size_t count, std::size_t longest) {
  std::vector<TokenSpan> best;  // a heap, the least likely first
  const std::size_t begin = feature.doc_begin, after = begin + feature.doc_length();
  const float max = *std::ranges::max_element(end.subspan(begin, after - begin));
  for (std::size_t first = begin; first < after; ++first) {
    if (best.size() == count && start[first] * max <= best.front().score) continue;
    for (std::size_t last = first; last < std::min(first + longest, after); ++last) {
      const TokenSpan span{start[first] * end[last], first, last};
      if (best.size() == count) {
        if (!(span > best.front())) continue;
        std::ranges::pop_heap(best, std::greater{});
        best.pop_back();
      }
      best.push_back(span);
      std::ranges::push_heap(best, std::greater{});
    }
  }
  std::ranges::sort_heap(best, std::greater{});
  return best;
}

/// Of tokens [first, last] of the document, or of the words that they are part of.
Span bytes_of(const Document& document, std::size_t first, std::size_t last, bool whole_words) {
  const auto word = [&](std::size_t token) { return document.token_words[token]; };
  while (whole_words && first > 0 && word(first - 1) == word(first)) --first;
  while (whole_words && last + 1 < document.words.size() && word(last + 1) == word(last)) ++last;
  return {document.words[first].begin, document.words[last].end};
}

}  // namespace

std::vector<BestAnswer> best_answers(const Document& document,
                                     std::span<const WindowLogits> windows,
                                     const BestAnswerOptions& options) {
  // Spans of the same words become one.
  const std::size_t count = options.whole_words ? 2 * options.top_k + 10 : options.top_k;
  std::vector<BestAnswer> answers;
  std::unordered_map<std::string, std::size_t> places;  // of answers
  double absent = std::numeric_limits<double>::infinity();
  for (const WindowLogits& window : windows) {
    const Feature& feature = *window.feature;
    const std::vector<float> start = probabilities(window.start, feature),
                             end = probabilities(window.end, feature);
    absent = std::min(absent, static_cast<double>(start[0] * end[0]));
    for (const auto& [score, first, last] :
         likeliest(start, end, feature, count, options.max_answer_length)) {
      const auto token = [&](std::size_t position) {
        return static_cast<std::size_t>(feature.token_to_orig[position - feature.doc_begin]);
      };
      const Span bytes = bytes_of(document, token(first), token(last), options.whole_words);
      std::string text(document.context.substr(bytes.begin, bytes.end - bytes.begin));
      const auto [place, is_new] = places.emplace(text::lower(text), answers.size());
      if (is_new) answers.push_back({std::move(text), bytes, 0.0});
      answers[place->second].score += score;
    }
  }
  if (options.may_be_absent) answers.push_back({"", {}, absent});
  std::ranges::stable_sort(answers, std::greater{}, &BestAnswer::score);
  if (answers.size() > options.top_k) answers.resize(options.top_k);
  return answers;
}

}  // namespace bertcl::squad
