// SPDX-License-Identifier: Apache-2.0
// Evaluation of the public interface: a session as the function that squad/ calls.
#include "bertcl/evaluate.hpp"

#include <utility>

#include "api/boundary.hpp"
#include "api/evaluation.hpp"
#include "api/session_impl.hpp"
#include "api/tokenizer_impl.hpp"
#include "squad/logit_outputs.hpp"
#include "squad/pipeline.hpp"

namespace bertcl {
namespace {

squad::EvaluateOptions to_squad(const SquadOptions& options) {
  squad::EvaluateOptions all;
  all.features = {options.max_length, options.doc_stride, options.max_query_length};
  all.predictions.n_best_size = options.n_best;
  all.predictions.max_answer_length = options.max_answer_length;
  all.predictions.null_score_diff_threshold = options.null_threshold;
  all.predictions.allow_nonfinite = options.allow_nonfinite;
  all.batches.max_tokens = options.batch_tokens;
  return all;
}

void check_model(const ModelInfo& info, const Tokenizer& tokenizer, const SquadOptions& options) {
  if (info.task != Task::question_answering)
    throw Error("the model has no start and end logits; SQuAD needs a question-answering head",
                ErrorCode::unsupported);
  check_sizes(info, tokenizer, options.max_length);
}

SquadScores to_public(const squad::Evaluation& evaluation) {
  SquadScores result;
  result.exact_match = evaluation.scores.exact_match;
  result.f1 = evaluation.scores.f1;
  for (const auto& [name, value] : evaluation.scores.official_metrics())
    result.metrics[name] = value;
  result.questions = evaluation.scores.total;
  result.windows = evaluation.features;
  result.tokens = evaluation.tokens;
  result.model_seconds = evaluation.model_seconds;
  result.seconds = evaluation.total_seconds;
  for (const squad::QuestionPrediction& question : evaluation.predictions)
    result.answers[question.id] = question.prediction.text;
  return result;
}

}  // namespace

SquadScores evaluate_squad(const Session& session, const Tokenizer& tokenizer,
                           const std::filesystem::path& data, const SquadOptions& options,
                           const SquadProgress& progress) {
  return translate_exceptions([&] {
    check_model(session.info(), tokenizer, options);
    const auto model =
        model_of(session, squad::find_logits(SessionAccess::of(session).outputs()), true);
    const auto tell = [&](const squad::Progress& now) {
      if (progress &&
          !call_user_callback([&] { return progress(now.questions, now.questions_total); }))
        throw Error("the evaluation was cancelled", ErrorCode::cancelled);
    };
    const squad::Evaluation evaluation =
        squad::evaluate(squad::load_dataset(data), TokenizerAccess::of_squad(tokenizer),
                        to_squad(options), model, tell, options.limit);
    SquadScores scores = to_public(evaluation);
    tasks::EvaluationRow row;
    row.take(evaluation);
    scores.json = report_of(std::move(row), session, "question-answering", data);
    return scores;
  });
}

}  // namespace bertcl
