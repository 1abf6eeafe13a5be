// SPDX-License-Identifier: Apache-2.0
// `bertcl eval` for each kind of task.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "squad/pipeline.hpp"
#include "tasks/embedding_files.hpp"
#include "text/tokenizer.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/task_options.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/report/eval_details.hpp"
#include "tools/report/eval_report.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {

struct EvalOptions : ModelOptions {
  std::vector<std::string> models, compare;
  TaskOptions task;
  std::string predictions, null_odds, nbest, html;
  VocabularyOptions vocabulary;
  squad::EvaluateOptions squad;
  std::optional<int> max_length, batch_tokens;
  tasks::EmbeddingFiles embedding;  ///< of the first model, where vectors are compared
  bool windows = false, force = false;
  std::vector<std::string> squad_only;  ///< options of SQuAD alone that were given
  std::size_t limit = 0;

  /// Results of single questions or texts are compared.
  bool keeps_items() const { return !html.empty() || models.size() + compare.size() > 1; }
};

/// Loads the data when it is made, and evaluates models on them.
struct Evaluator {
  /// `first`: writes the files of predictions that the options ask for.
  std::function<EvaluatedModel(runtime::Session& session, bool first)> evaluate;
  std::string unit;  ///< of EvaluatedModel::total: "questions"
  ItemTexts texts;   ///< empty for tasks without questions
};

/// A row with what is known before the model is run: its path, precision and size.
EvaluatedModel begin_row(const runtime::Session& session, const EvalOptions& options);

/// The progress line of a row, with the tokens of each second inside the model.
class EvaluationProgress {
 public:
  EvaluationProgress(const EvaluatedModel& row, const std::string& unit);
  void update(std::size_t done, std::size_t total, std::size_t tokens, double model_seconds);

 private:
  Progress progress_;
};

Evaluator squad_evaluator(const EvalOptions& options, const text::Tokenizer& tokenizer);

/// For all other tasks; `models` are where config.json is looked for.
Evaluator task_evaluator(const EvalOptions& options, const text::Tokenizer& tokenizer,
                         const std::vector<std::filesystem::path>& models);

}  // namespace bertcl::tools
