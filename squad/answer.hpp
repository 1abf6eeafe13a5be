// SPDX-License-Identifier: Apache-2.0
// One question about one text of any length.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "squad/batch.hpp"
#include "squad/features.hpp"
#include "squad/predictions.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::squad {

struct AnswerOptions {
  FeatureOptions features;
  PredictionOptions predictions;  ///< version_2: the answer may be that there is none
  BatchOptions batches;
};

struct FoundAnswer {
  std::string text;                 ///< as it stands in the context; "" if there is none
  std::optional<Span> bytes;        ///< of the answer in the UTF-8 context
  std::optional<Span> characters;   ///< the same in code points (answer_start of SQuAD)
  double score = 0.0;               ///< start logit + end logit
  double probability = 0.0;         ///< among the n-best answers
  std::optional<double> null_odds;  ///< with version_2: above the threshold means no answer
  std::vector<NBestEntry> nbest;
  std::size_t features = 0;  ///< windows that the model read
  /// Tokens of the question past FeatureOptions::max_query_length.
  std::size_t question_truncated = 0;
};

/// A question and its windows over a context, which must outlive it.
struct PreparedQuestion {
  Document document;
  std::vector<Feature> features;
  std::size_t question_truncated = 0;  ///< as FoundAnswer's
};

/// The first half of answer_question(), for callers that run the windows themselves.
PreparedQuestion prepare_question(std::string_view question, Document document,
                                  const text::Tokenizer& tokenizer, const FeatureOptions& options);

/// Finds the answer to `question` in `context`.
/// Throws Error if either has no tokens; exceptions of the model pass through.
FoundAnswer answer_question(std::string_view question, std::string_view context,
                            const text::Tokenizer& tokenizer, const AnswerOptions& options,
                            const LogitsFn& model);

}  // namespace bertcl::squad
