// SPDX-License-Identifier: Apache-2.0
// Entities of a text from the labels of its tokens.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace bertcl::tasks {

/// How labels of tokens become those of entities, as the aggregation_strategy of Hugging Face's
/// TokenClassificationPipeline: none, each token by itself; simple, neighbours of one kind are an
/// entity, by their B- and I- prefixes; first, average, max: words are labelled as a whole before,
/// as their first token, by the mean of their scores, by the token with the highest score.
enum class Aggregation { none, simple, first, average, max };

struct TextEntity {
  std::string label;      ///< of a token, "B-PER"; aggregated, its kind, "PER"
  float score = 0;        ///< mean of its tokens or words
  text::Span span;        ///< bytes of the text
  std::size_t token = 0;  ///< the first one, of those of the text
};

/// Entities of a text in their order, without those that are "O".
/// @param encoding the text's tokens without special ones, with their spans
/// @param scores [tokens, labels], probabilities
std::vector<TextEntity> find_entities(std::string_view text, const text::Encoding& encoding,
                                      std::span<const float> scores,
                                      const text::Tokenizer& tokenizer,
                                      const std::vector<std::string>& labels,
                                      Aggregation aggregation);

}  // namespace bertcl::tasks
