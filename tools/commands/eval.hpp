// SPDX-License-Identifier: Apache-2.0
// The parts of `bertcl eval`.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "squad/dataset.hpp"
#include "squad/predictions.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/task.hpp"
#include "text/tokenizer.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/task_options.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/report/eval_details.hpp"
#include "tools/report/eval_report.hpp"

namespace bertcl::tools {

struct EvalOptions : ModelOptions {
  std::vector<std::string> models, compare;
  TaskOptions task;
  std::string predictions, null_odds, nbest, html;
  VocabularyOptions vocabulary;
  tasks::QuestionOptions questions;
  std::optional<int> max_length, batch_tokens;
  tasks::EmbeddingFiles embedding;  ///< beside the model that is evaluated
  bool windows = false, force = false;
  std::vector<std::string> squad_only;  ///< options of SQuAD alone that were given
  std::size_t limit = 0;

  /// Results of single questions or texts are compared.
  bool keeps_items() const { return !html.empty() || models.size() + compare.size() > 1; }
};

/// What models are evaluated on.
struct EvalData {
  std::shared_ptr<const tasks::Task> task;
  std::shared_ptr<const squad::Dataset> dataset;  ///< of questions; else null
};

// Of question answering.

EvalData load_questions(const EvalOptions& options);
/// Throws Error that names other tasks if the model does not answer questions.
void check_answers(const runtime::Session& session);
/// Adds to each answer its own scores, by the rules of the script that scores all.
void add_scores(const squad::Dataset& dataset, std::span<const squad::QuestionPrediction> answers,
                std::vector<ItemResult>& items);
ItemTexts texts_of(std::shared_ptr<const squad::Dataset> dataset);

/// `first`: writes the files of predictions that the options ask for.
EvaluatedModel evaluate_model(runtime::Session& session, const EvalOptions& options,
                              const EvalData& data, const text::Tokenizer& tokenizer, bool first);

}  // namespace bertcl::tools
