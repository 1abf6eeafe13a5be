// SPDX-License-Identifier: Apache-2.0
// Evaluates a model on a SQuAD data set: questions in, scores, answers and times out.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "squad/batch.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "squad/metrics.hpp"
#include "squad/predictions.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::squad {

struct EvaluateOptions {
  FeatureOptions features;
  PredictionOptions predictions;  ///< version_2 is taken from the data set
  BatchOptions batches;
  std::size_t window_features = 2048;  ///< windows that are sorted by length together
  bool keep_nbest = false;             ///< keep the n-best list of each answer
};

struct Progress {
  std::size_t questions = 0;  ///< done, estimated inside a group of questions
  std::size_t questions_total = 0;
  std::size_t features = 0;    ///< done
  std::size_t tokens = 0;      ///< done, padding not counted
  double model_seconds = 0.0;  ///< spent in the model so far
};

/// Called after each batch by the thread that called evaluate.
using ProgressFn = std::function<void(const Progress&)>;

struct QuestionPrediction {
  std::string id;
  Prediction prediction;
};

struct Evaluation {
  std::vector<QuestionPrediction> predictions;  ///< in the order of the data set
  Scores scores;
  std::size_t features = 0;
  std::size_t tokens = 0;         ///< real tokens
  std::size_t tokens_padded = 0;  ///< features * max_seq_length: what fixed shapes would compute
  double model_seconds = 0.0;     ///< inside the model function
  double total_seconds = 0.0;

  Predictions answers() const;  ///< text by question id
  NullOdds null_odds() const;   ///< by question id; empty for v1.1
};

/// Answers the first `limit` questions (all, if 0) with `model` and scores them. Tokenizing and
/// the choice of answers run on two threads beside the model; memory does not grow with the number
/// of questions but for their answers. The result does not depend on how batches are formed, if
/// a row's logits do not. Exceptions of the model pass through.
Evaluation evaluate(const Dataset& dataset, const text::Tokenizer& tokenizer,
                    const EvaluateOptions& options, const LogitsFn& model,
                    const ProgressFn& progress = {}, std::size_t limit = 0);

/// Writes {id: text} for evaluate-v1.1.py and evaluate-v2.0.py.
void save_predictions(const std::filesystem::path& path, const Evaluation& evaluation);

/// Writes {id: null odds} for evaluate-v2.0.py --na-prob-file.
void save_null_odds(const std::filesystem::path& path, const Evaluation& evaluation);

/// Writes {id: [{text, probability, start_logit, end_logit}]}; needs keep_nbest.
void save_nbest(const std::filesystem::path& path, const Evaluation& evaluation);

}  // namespace bertcl::squad
