// SPDX-License-Identifier: Apache-2.0
// Evaluation on SQuAD.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bertcl/error.hpp"
#include "squad/logit_outputs.hpp"
#include "support/fail.hpp"
#include "tasks/head_output.hpp"
#include "tools/commands/eval.hpp"
#include "tools/models/task_model.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

std::vector<Score> scores_of(const squad::Scores& scores) {
  std::vector<Score> rows = {{"EM", scores.exact_match, 3, true}, {"F1", scores.f1, 3, true}};
  if (scores.has_answer && scores.has_answer->total > 0)
    rows.push_back({"F1, answerable", scores.has_answer->f1});
  if (scores.no_answer && scores.no_answer->total > 0)
    rows.push_back({"F1, unanswerable", scores.no_answer->f1});
  if (scores.thresholds) {
    rows.push_back({"best F1", scores.thresholds->best_f1});
    rows.push_back({"  at null threshold", scores.thresholds->best_f1_thresh});
  }
  return rows;
}

void write_files(const EvalOptions& options, const squad::Evaluation& evaluation) {
  if (!options.predictions.empty()) squad::save_predictions(options.predictions, evaluation);
  if (!options.null_odds.empty()) squad::save_null_odds(options.null_odds, evaluation);
  if (!options.nbest.empty()) squad::save_nbest(options.nbest, evaluation);
}

/// Each answer with its own scores, by the rules of the script that scores all.
std::vector<ItemResult> items_of(const squad::Dataset& dataset,
                                 const squad::Evaluation& evaluation) {
  std::vector<ItemResult> items;
  for (std::size_t i = 0; i < evaluation.predictions.size(); ++i) {
    const squad::QuestionPrediction& given = evaluation.predictions[i];
    const std::span<const squad::Question> question(&dataset.questions[i], 1);
    const squad::Predictions answer = {{given.id, given.prediction.text}};
    const squad::Scores scores = dataset.version_2 ? squad::evaluate_v2(question, answer)
                                                   : squad::evaluate_v1(question, answer);
    ItemResult& item = items.emplace_back();
    item.id = given.id;
    item.prediction = given.prediction.text;
    item.span = given.prediction.span;
    item.exact = scores.exact_match;
    item.f1 = scores.f1;
  }
  return items;
}

ItemText text_of(const squad::Dataset& dataset, std::size_t item) {
  const squad::Question& question = dataset.questions[item];
  return {question.text, dataset.context_of(question), question.answers};
}

/// Throws Error that names other tasks if the model does not answer questions.
void check_answers(const runtime::Session& session) {
  try {
    squad::find_logits(session.outputs());
  } catch (const Error& error) {
    const auto fitting = tasks::fitting_tasks(session.outputs(), session.plan().word_rows);
    if (fitting.empty()) return;  // TaskModel refuses it
    fail("{}: {}; for this model use --task {}", session.path().string(), error.what(),
         fmt::join(fitting, " or "));
  }
}

EvaluatedModel evaluate_model(runtime::Session& session, const EvalOptions& options,
                              const squad::Dataset& dataset, const text::Tokenizer& tokenizer,
                              bool first) {
  EvaluatedModel row = begin_row(session, options);
  check_answers(session);
  TaskModel model(session);
  model.check_vocabulary(tokenizer);
  squad::EvaluateOptions evaluate = options.squad;
  evaluate.predictions.allow_nonfinite = options.allow_nonfinite;
  evaluate.keep_nbest = !options.nbest.empty();
  int& length = evaluate.features.max_seq_length;
  length = options.max_length.value_or(std::min(length, model.max_length(std::nullopt)));
  if (options.batch_tokens) evaluate.batches.max_tokens = *options.batch_tokens;
  model.check_length(length);
  model.bound(evaluate.batches);
  model.warm_up();
  EvaluationProgress progress(row, "questions");
  const auto show = [&](const squad::Progress& now) {
    progress.update(now.questions, now.questions_total, now.tokens, now.model_seconds);
  };
  const squad::Evaluation evaluation = naming_model(row.path, [&] {
    return squad::evaluate(dataset, tokenizer, evaluate, std::ref(model), show, options.limit);
  });
  if (first) write_files(options, evaluation);
  if (options.keeps_items()) row.items = items_of(dataset, evaluation);
  row.scores = scores_of(evaluation.scores);
  row.take(evaluation);
  return row;
}

}  // namespace

Evaluator squad_evaluator(const EvalOptions& options, const text::Tokenizer& tokenizer) {
  const auto dataset =
      std::make_shared<const squad::Dataset>(squad::load_dataset(options.task.data));
  if (!dataset->version_2 && !options.null_odds.empty())
    throw Error(options.task.data +
                ": every question has an answer, so --null-odds cannot be written; omit it");
  if (!dataset->version_2 && options.squad.predictions.null_score_diff_threshold != 0)
    throw Error(options.task.data +
                ": every question has an answer, so --null-threshold cannot be used; omit it");
  return {[&options, &tokenizer, dataset](runtime::Session& session, bool first) {
            return evaluate_model(session, options, *dataset, tokenizer, first);
          },
          "questions", [dataset](std::size_t item) { return text_of(*dataset, item); }};
}

}  // namespace bertcl::tools
