// SPDX-License-Identifier: Apache-2.0
// Evaluation on SQuAD.
#include <memory>

#include "tools/commands/eval.hpp"
#include "tools/models/qa_model.hpp"
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

EvaluatedModel evaluate_model(runtime::Session& session, const EvalOptions& options,
                              const squad::Dataset& dataset,
                              const text::WordPieceTokenizer& tokenizer, bool first) {
  EvaluatedModel row = begin_row(session, options);
  QaModel model(session);
  model.check_vocabulary(tokenizer.vocabulary_size());
  squad::EvaluateOptions evaluate = options.squad;
  evaluate.predictions.allow_nonfinite = options.allow_nonfinite;
  evaluate.keep_nbest = !options.nbest.empty();
  if (options.max_length) evaluate.features.max_seq_length = *options.max_length;
  if (options.batch_tokens) evaluate.batches.max_tokens = *options.batch_tokens;
  model.bound(evaluate.features, evaluate.batches);
  model.warm_up();
  EvaluationProgress progress(row, "questions");
  const auto show = [&](const squad::Progress& now) {
    progress.update(now.questions, now.questions_total, now.tokens, now.model_seconds);
  };
  const squad::Evaluation evaluation = naming_model(row.path, [&] {
    return squad::evaluate(dataset, tokenizer, evaluate, std::ref(model), show, options.limit);
  });
  if (first) write_files(options, evaluation);
  row.scores = scores_of(evaluation.scores);
  row.metrics = {{"exact_match", evaluation.scores.exact_match}, {"f1", evaluation.scores.f1}};
  for (const auto& [name, value] : evaluation.scores.official())
    if (name != "exact") row.more_metrics.emplace_back(name, value);
  row.total = evaluation.scores.total;
  row.features = evaluation.features;
  take_costs(evaluation, row);
  return row;
}

}  // namespace

Evaluator squad_evaluator(const EvalOptions& options, const text::WordPieceTokenizer& tokenizer) {
  const auto dataset =
      std::make_shared<const squad::Dataset>(squad::load_dataset(options.task.data));
  return {[&options, &tokenizer, dataset](runtime::Session& session, bool first) {
            return evaluate_model(session, options, *dataset, tokenizer, first);
          },
          "questions"};
}

}  // namespace bertcl::tools
