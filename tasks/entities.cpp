// SPDX-License-Identifier: Apache-2.0
// Tokens are words or parts of them; words or tokens of one kind that follow each other are one
// entity (pipelines/token_classification.py of Hugging Face transformers).
#include "tasks/entities.hpp"

#include <algorithm>
#include <optional>

#include "tasks/scores/argmax.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tasks {
namespace {

using Scores = std::span<const float>;

struct Token {
  Scores scores;  // [labels]
  text::Span span;
  std::size_t index = 0;
  bool continues = false;  // the word of the token before it
};

std::string_view of(std::string_view text, const text::Span& span) {
  return text.substr(span.begin, span.end - span.begin);
}

/// If tokens inside a word have a prefix ("##"), those whose length differs from that of their
/// text; else those without a space before them.
bool continues_word(std::string_view text, const std::string& token, const text::Span& span,
                    bool marked) {
  if (marked) return text::count_code_points(token) != text::count_code_points(of(text, span));
  return span.begin > 0 && text[span.begin - 1] != ' ' &&
         (span.begin == text.size() || text[span.begin] != ' ');
}

std::vector<Token> tokens_of(std::string_view text, const text::Encoding& encoding, Scores scores,
                             const text::Tokenizer& tokenizer, std::size_t labels) {
  std::vector<Token> tokens;
  const bool marked = tokenizer.marks_pieces();
  const std::optional<std::int32_t> unknown = tokenizer.unknown_id();
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    const std::int32_t id = encoding.ids[i];
    const text::Span& span = encoding.spans[i];
    const bool continues = id != unknown && continues_word(text, tokenizer.token(id), span, marked);
    tokens.push_back({scores.subspan(i * labels, labels), span, i, continues});
  }
  return tokens;
}

TextEntity labelled(Scores scores, const text::Span& span, std::size_t token,
                    const std::vector<std::string>& labels) {
  const std::size_t best = argmax(scores);
  return {labels[best], scores[best], span, token};
}

TextEntity label_word(std::span<const Token> word, const std::vector<std::string>& labels,
                      Aggregation aggregation) {
  const text::Span span = {word.front().span.begin, word.back().span.end};
  const std::size_t first = word.front().index;
  if (aggregation == Aggregation::first) return labelled(word.front().scores, span, first, labels);
  if (aggregation == Aggregation::max) {
    const auto highest = [](const Token& token) { return *std::ranges::max_element(token.scores); };
    const auto surest = std::ranges::max_element(word, {}, highest);
    return labelled(surest->scores, span, first, labels);
  }
  std::vector<float> mean(labels.size());
  for (std::size_t label = 0; label < mean.size(); ++label) {
    double sum = 0;
    for (const Token& token : word) sum += token.scores[label];
    mean[label] = static_cast<float>(sum / static_cast<double>(word.size()));
  }
  return labelled(mean, span, first, labels);
}

/// Each word of several tokens with one label.
std::vector<TextEntity> label_words(std::span<const Token> tokens,
                                    const std::vector<std::string>& labels,
                                    Aggregation aggregation) {
  std::vector<TextEntity> words;
  for (std::size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    for (end = begin + 1; end < tokens.size() && tokens[end].continues;) ++end;
    words.push_back(label_word(tokens.subspan(begin, end - begin), labels, aggregation));
  }
  return words;
}

/// "PER" of "B-PER" and "I-PER".
std::string_view kind_of(std::string_view label) {
  return label.starts_with("B-") || label.starts_with("I-") ? label.substr(2) : label;
}

std::vector<TextEntity> group(const std::vector<TextEntity>& parts) {
  std::vector<TextEntity> groups;
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    double sum = parts[begin].score;
    for (end = begin + 1; end < parts.size() && !parts[end].label.starts_with("B-") &&
                          kind_of(parts[end].label) == kind_of(parts[begin].label);
         ++end)
      sum += parts[end].score;
    const std::string& label = parts[begin].label;
    const std::size_t dash = label.find('-');
    groups.push_back({dash == label.npos ? label : label.substr(dash + 1),
                      static_cast<float>(sum / static_cast<double>(end - begin)),
                      {parts[begin].span.begin, parts[end - 1].span.end},
                      parts[begin].token});
  }
  return groups;
}

}  // namespace

std::vector<TextEntity> find_entities(std::string_view text, const text::Encoding& encoding,
                                      std::span<const float> scores,
                                      const text::Tokenizer& tokenizer,
                                      const std::vector<std::string>& labels,
                                      Aggregation aggregation) {
  const std::vector<Token> tokens = tokens_of(text, encoding, scores, tokenizer, labels.size());
  std::vector<TextEntity> entities;
  if (aggregation == Aggregation::none || aggregation == Aggregation::simple) {
    for (const Token& token : tokens)
      entities.push_back(labelled(token.scores, token.span, token.index, labels));
  } else {
    entities = label_words(tokens, labels, aggregation);
  }
  if (aggregation != Aggregation::none) entities = group(entities);
  std::erase_if(entities, [](const TextEntity& entity) { return entity.label == "O"; });
  return entities;
}

}  // namespace bertcl::tasks
