// SPDX-License-Identifier: Apache-2.0
// Evaluation on tasks other than SQuAD.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/pending_file.hpp"
#include "tasks/evaluate.hpp"
#include "tasks/head_output.hpp"
#include "tools/commands/eval.hpp"
#include "tools/models/task_model.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

Score score_of(const tasks::Metric& metric) {
  const bool part = metric.name == "precision" || metric.name == "recall" ||
                    metric.name.starts_with("bm25_");  // of which the model is no part
  return {(part ? "  " : "") + metric_title(metric.name), metric.value,
          metric.is_correlation ? 5 : 3, !part};
}

/// In UTF-8. A name of a file or of a class that is none has U+FFFD in place of what is wrong.
std::string dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// One line for each item.
void write_predictions(const std::filesystem::path& path, const nlohmann::ordered_json& values) {
  std::string content;
  for (const auto& [id, value] : values.items())
    content += fmt::format("{}\n  {}: {}", content.empty() ? "{" : ",", dump(id), dump(value));
  write_file(path, (content.empty() ? "{" : content) + "\n}\n");
}

std::vector<ItemResult> items_of(const nlohmann::ordered_json& predictions) {
  std::vector<ItemResult> items;
  for (const auto& [id, value] : predictions.items()) {
    ItemResult& item = items.emplace_back();
    item.id = id;
    item.prediction = value.is_string() ? value.get<std::string>() : dump(value);
    if (value.is_number_float()) item.number = value.get<double>();  // integers are indices
    if (value.is_array())
      for (const auto& part : value)
        item.parts.push_back(part.is_string() ? part.get<std::string>() : dump(part));
  }
  return items;
}

EvaluatedModel evaluate_model(runtime::Session& session, const EvalOptions& options,
                              const tasks::Task& task, const text::Tokenizer& tokenizer,
                              bool first) {
  EvaluatedModel row = begin_row(session, options);
  TaskModel model(session, task.head());
  model.check_vocabulary(tokenizer);
  tasks::EvaluateOptions evaluate;
  evaluate.encode.max_length = options.max_length.value_or(
      options.embedding.longest_text(static_cast<int>(model.longest_sequence())));
  evaluate.encode.windows = options.windows;
  evaluate.encode.lower_case = options.embedding.lower_case && !options.vocabulary.lower_case;
  evaluate.origin = options.task.data;
  evaluate.allow_nonfinite = options.allow_nonfinite;
  evaluate.batches = tasks::usual_batches(task.head());
  if (options.batch_tokens) evaluate.batches.max_tokens = *options.batch_tokens;
  model.check_length(evaluate.encode.max_length);
  model.bound(evaluate.batches);
  model.warm_up();
  EvaluationProgress progress(row, "sequences");
  const auto show = [&](const tasks::Progress& now) {
    progress.update(now.sequences, now.sequences_total, now.tokens, now.model_seconds);
  };
  const tasks::Evaluation evaluation = naming_model(
      row.path,
      [&] {
        return tasks::evaluate(task, tokenizer, evaluate, std::ref(model), show, options.limit);
      },
      evaluate.origin);
  const bool writes = first && !options.predictions.empty();
  if (writes || options.keeps_items()) {
    const nlohmann::ordered_json predictions = evaluation.results->predictions();
    if (writes) write_predictions(options.predictions, predictions);
    if (options.keeps_items()) row.items = items_of(predictions);
  }
  for (const tasks::Metric& metric : evaluation.metrics) row.scores.push_back(score_of(metric));
  row.vectors = evaluation.results->vectors();
  row.max_length = static_cast<std::size_t>(evaluate.encode.max_length);
  row.take(evaluation);
  return row;
}

}  // namespace

Evaluator task_evaluator(const EvalOptions& options, const text::Tokenizer& tokenizer,
                         const std::vector<std::filesystem::path>& models) {
  const std::shared_ptr<const tasks::Task> task = load_task(options.task, models, tokenizer);
  return {[&options, &tokenizer, task](runtime::Session& session, bool first) {
            return evaluate_model(session, options, *task, tokenizer, first);
          },
          task->unit(),
          {}};
}

}  // namespace bertcl::tools
