// SPDX-License-Identifier: Apache-2.0
// Evaluation on SQuAD: its options, files and scores of single answers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <span>
#include <vector>

#include "bertcl/error.hpp"
#include "squad/logit_outputs.hpp"
#include "squad/metrics.hpp"
#include "support/fail.hpp"
#include "tasks/head_output.hpp"
#include "tools/commands/eval.hpp"

namespace bertcl::tools {

EvalData load_questions(const EvalOptions& options) {
  const auto dataset =
      std::make_shared<const squad::Dataset>(squad::load_dataset(options.task.data));
  if (!dataset->version_2 && !options.null_odds.empty())
    throw Error(options.task.data +
                ": every question has an answer, so --null-odds cannot be written; omit it");
  if (!dataset->version_2 && options.questions.predictions.null_score_diff_threshold != 0)
    throw Error(options.task.data +
                ": every question has an answer, so --null-threshold cannot be used; omit it");
  tasks::QuestionOptions questions = options.questions;
  questions.keep_nbest = !options.nbest.empty();
  return {tasks::questions_task(dataset, questions), dataset};
}

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

void add_scores(const squad::Dataset& dataset, std::span<const squad::QuestionPrediction> answers,
                std::vector<ItemResult>& items) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& [id, prediction] = answers[i];
    const std::span<const squad::Question> question(&dataset.questions[i], 1);
    const squad::Predictions answer = {{id, prediction.text}};
    const squad::Scores scores = dataset.version_2 ? squad::evaluate_v2(question, answer)
                                                   : squad::evaluate_v1(question, answer);
    items[i].span = prediction.span;
    items[i].exact = scores.exact_match;
    items[i].f1 = scores.f1;
  }
}

ItemTexts texts_of(std::shared_ptr<const squad::Dataset> dataset) {
  return [dataset = std::move(dataset)](std::size_t item) {
    const squad::Question& question = dataset->questions[item];
    return ItemText{question.text, dataset->context_of(question), question.answers};
  };
}

}  // namespace bertcl::tools
