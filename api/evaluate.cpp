// SPDX-License-Identifier: Apache-2.0
// SQuAD of the public interface.
#include "bertcl/evaluate.hpp"

#include <memory>
#include <string>

#include "api/boundary.hpp"
#include "api/evaluation.hpp"
#include "api/tokenizer_impl.hpp"

namespace bertcl {
namespace {

tasks::QuestionOptions questions_of(const SquadOptions& options) {
  tasks::QuestionOptions questions;
  questions.features = {options.max_length, options.doc_stride, options.max_query_length};
  questions.predictions.n_best_size = options.n_best;
  questions.predictions.max_answer_length = options.max_answer_length;
  questions.predictions.null_score_diff_threshold = options.null_threshold;
  return questions;
}

SquadScores to_public(const tasks::Evaluation& evaluation) {
  SquadScores result;
  for (const tasks::Metric& metric : evaluation.metrics) {
    if (metric.detail) result.metrics[metric.name] = metric.value;
    if (metric.name == "exact_match") result.exact_match = metric.value;
    if (metric.name == "f1") result.f1 = metric.value;
  }
  result.questions = evaluation.items;
  result.windows = evaluation.sequences;
  result.tokens = evaluation.tokens;
  result.model_seconds = evaluation.model_seconds;
  result.seconds = evaluation.total_seconds;
  for (const auto& [id, prediction] : evaluation.results->answers())
    result.answers[id] = prediction.text;
  return result;
}

}  // namespace

SquadScores evaluate_squad(const Session& session, const Tokenizer& tokenizer,
                           const std::filesystem::path& data, const SquadOptions& options,
                           const SquadProgress& progress) {
  return translate_exceptions([&] {
    if (session.info().task != Task::question_answering)
      throw Error("the model has no start and end logits; SQuAD needs a question-answering head",
                  ErrorCode::unsupported);
    const auto questions = tasks::questions_task(
        std::make_shared<const squad::Dataset>(squad::load_dataset(data)), questions_of(options));
    tasks::EvaluateOptions all;
    all.encode.max_length = options.max_length;
    all.batches.max_tokens = options.batch_tokens;
    all.origin = data.string();
    all.allow_nonfinite = options.allow_nonfinite;
    const tasks::Evaluation evaluation = run_task(session, TokenizerAccess::of_squad(tokenizer),
                                                  *questions, all, progress, options.limit);
    SquadScores scores = to_public(evaluation);
    scores.json = report_of(evaluation, session, "question-answering", data);
    return scores;
  });
}

}  // namespace bertcl
