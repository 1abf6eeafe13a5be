// SPDX-License-Identifier: Apache-2.0
// Turns the start and end logits of all windows of a question into its answer and n-best list.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "squad/features.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::squad {

struct PredictionOptions {
  int n_best_size = 20;
  int max_answer_length = 30;              ///< in word pieces
  bool version_2 = false;                  ///< a question may have no answer
  double null_score_diff_threshold = 0.0;  ///< "" is predicted where null_odds is above it
  bool allow_nonfinite = false;            ///< infinite logits and NaN, never chosen; else an error
};

/// Logits of one window. Reaches at least over its tokens; what lies beyond competes for the
/// best indexes, as padding does in the reference code, but never becomes an answer.
struct WindowLogits {
  const Feature* feature = nullptr;
  std::span<const float> start;
  std::span<const float> end;
};

/// One answer of the n-best list. `text` is as the reference has it: it joins the words by single
/// spaces, and is the first part of these words that the tokens spell. `span` is the part that the
/// tokens stand for; it may hold other white space, or the same tokens in another case.
struct NBestEntry {
  std::string text;
  double probability = 0.0;
  double start_logit = 0.0;
  double end_logit = 0.0;
  std::optional<Span> span;  ///< of the answer in the context; none for "" and "empty"
};

struct Prediction {
  std::string text;  ///< "" where no answer is predicted (v2.0)
  std::vector<NBestEntry> nbest;
  std::optional<double> null_odds;  ///< v2.0: least null score - score of the best answer
  std::optional<Span> span;         ///< of the answer in the context, as NBestEntry's
};

struct QuestionPrediction {
  std::string id;
  Prediction prediction;
};

/// Throws Error if a bound is below 1 or the threshold is NaN.
void check(const PredictionOptions& options);

/// `write_predictions` of google-research/bert run_squad.py for one question whose windows stand in
/// their order. Equal sums keep the order in which they were found: lower window, then the rank
/// of start and end, where equal logits rank by lower index.
/// Throws Error if logits are not finite or do not reach over the tokens of their window.
Prediction predict(const Document& document, std::span<const WindowLogits> windows,
                   const text::Tokenizer& tokenizer, const PredictionOptions& options);

/// Part of `original` that reads `prediction` once tokenized; none where the two cannot be aligned.
/// `prediction` is word pieces joined to words. (run_squad.py, get_final_text.)
/// The first such part after `before`, the word pieces that `original` begins with; an empty one
/// stands for a word that the vocabulary lacks.
std::optional<Span> find_final_text(std::string_view prediction, std::string_view original,
                                    const text::BasicTokenizer& tokenizer,
                                    std::span<const std::string_view> before = {});

}  // namespace bertcl::squad
