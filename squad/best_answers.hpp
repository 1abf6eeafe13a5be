// SPDX-License-Identifier: Apache-2.0
// Answers and scores as Hugging Face's question-answering pipeline finds them.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "squad/features.hpp"
#include "squad/predictions.hpp"

namespace bertcl::squad {

struct BestAnswerOptions {
  std::size_t top_k = 1;
  std::size_t max_answer_length = 15;  ///< in tokens
  bool may_be_absent = false;          ///< "" may be the answer
  bool whole_words = true;             ///< as the tokenizer splits the text into words
};

struct BestAnswer {
  std::string text;    ///< as it stands in the context; "": there is none
  Span bytes;          ///< of it in the context
  double score = 0.0;  ///< from 0 to 1, more where windows overlap
};

/// The best answers, best first, as `QuestionAnsweringPipeline` of transformers 4.57.6: the score
/// of a span is the product of the probabilities of its first and last token among those of a
/// window, those of equal texts are added, and that of "" is the product for [CLS] in the window
/// where it is least. Logits that are not finite are never chosen. `document` is one of
/// make_token_document().
std::vector<BestAnswer> best_answers(const Document& document,
                                     std::span<const WindowLogits> windows,
                                     const BestAnswerOptions& options);

}  // namespace bertcl::squad
