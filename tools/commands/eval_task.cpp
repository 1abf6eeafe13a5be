// SPDX-License-Identifier: Apache-2.0
// Evaluation of a model on a task.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "onnx/read_model.hpp"
#include "plan/report.hpp"
#include "support/json_text.hpp"
#include "tasks/evaluate.hpp"
#include "tasks/head_output.hpp"
#include "tasks/model_files/model_config.hpp"
#include "tasks/prediction_files.hpp"
#include "text/base/data_file.hpp"
#include "tools/commands/eval.hpp"
#include "tools/models/task_model.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {
namespace {

/// A row of the table; none for what stands in the JSON alone.
std::optional<Score> score_of(const tasks::Metric& metric) {
  if (metric.detail) {
    static const std::map<std::string, std::string> titles = {
        {"HasAns_f1", "F1, answerable"},
        {"NoAns_f1", "F1, unanswerable"},
        {"best_f1", "best F1"},
        {"best_f1_thresh", "  at null threshold"}};
    const auto title = titles.find(metric.name);
    if (title == titles.end()) return std::nullopt;
    return Score{title->second, metric.value};
  }
  const bool part = metric.name == "precision" || metric.name == "recall" ||
                    metric.name.starts_with("bm25_");  // of which the model is not a part
  return Score{(part ? "  " : "") + tasks::metric_title(metric.name), metric.value,
               metric.is_correlation ? 5 : 3, !part};
}

std::vector<ItemResult> items_of(const nlohmann::ordered_json& predictions) {
  std::vector<ItemResult> items;
  for (const auto& [id, value] : predictions.items()) {
    ItemResult& item = items.emplace_back();
    item.id = id;
    item.prediction = value.is_string() ? value.get<std::string>() : json_text(value);
    if (value.is_number_float()) item.number = value.get<double>();  // integers are indices
    if (value.is_array())
      for (const auto& part : value)
        item.parts.push_back(part.is_string() ? part.get<std::string>() : json_text(part));
  }
  return items;
}

/// Those of the first model. What was predicted of each item, if it is asked for.
std::vector<ItemResult> write_files(const EvalOptions& options, const EvalData& data,
                                    const tasks::Results& results, bool first) {
  const bool writes = first && !options.predictions.empty();
  const auto answers = results.answers();
  if (first && !options.null_odds.empty()) tasks::save_null_odds(options.null_odds, answers);
  if (first && !options.nbest.empty()) tasks::save_nbest(options.nbest, answers);
  if (!writes && !options.keeps_items()) return {};
  const nlohmann::ordered_json predictions = results.predictions();
  if (writes) tasks::save_predictions(options.predictions, predictions);
  if (!options.keeps_items()) return {};
  std::vector<ItemResult> items = items_of(predictions);
  if (data.dataset) add_scores(*data.dataset, answers, items);
  return items;
}

/// Tokens of the longest sequence.
int longest(const EvalOptions& options, const EvalData& data, const TaskModel& model) {
  if (options.max_length) return *options.max_length;
  if (data.dataset)
    return std::min(options.questions.features.max_seq_length, model.max_length(std::nullopt));
  return tasks::longest_text(options.embedding.max_length, model.longest_sequence());
}

}  // namespace

EvaluatedModel evaluate_model(runtime::Session& session, const EvalOptions& options,
                              const EvalData& data, const text::Tokenizer& tokenizer, bool first) {
  const tasks::Task& task = *data.task;
  EvaluatedModel row;
  row.path = session.path();
  row.precision = plan::precision_of(session.plan()).str();
  row.bytes = onnx_io::model_bytes(session.path());
  if (data.dataset) check_answers(session);
  TaskModel model(session, task.head());
  model.check_vocabulary(tokenizer);
  tasks::EvaluateOptions evaluate;
  evaluate.encode.max_length = longest(options, data, model);
  evaluate.encode.windows = options.windows;
  evaluate.encode.lower_case = options.embedding.lower_case && !options.vocabulary.lower_case;
  evaluate.origin = text::data_name(options.task.data);
  evaluate.allow_nonfinite = options.allow_nonfinite;
  evaluate.batches = tasks::usual_batches(task.head());
  if (options.batch_tokens) evaluate.batches.max_tokens = *options.batch_tokens;
  model.check_length(evaluate.encode.max_length);
  model.bound(evaluate.batches);
  model.warm_up();
  Progress progress(row.precision + " " + row.path.filename().string(), progress_unit(task));
  const auto show = [&](const tasks::Progress& now) {
    const double rate = static_cast<double>(now.tokens) / std::max(1e-9, now.model_seconds);
    progress.update(now.done, now.total, grouped(static_cast<std::int64_t>(rate)) + " tokens/s");
  };
  const tasks::Evaluation evaluation = naming_model(
      row.path,
      [&] {
        return tasks::evaluate(task, tokenizer, evaluate, std::ref(model), show, options.limit);
      },
      evaluate.origin);
  row.items = write_files(options, data, *evaluation.results, first);
  for (const tasks::Metric& metric : evaluation.metrics)
    if (auto score = score_of(metric)) row.scores.push_back(std::move(*score));
  row.vectors = evaluation.results->vectors();
  row.max_length = static_cast<std::size_t>(evaluate.encode.max_length);
  row.set_results(evaluation);
  return row;
}

}  // namespace bertcl::tools
