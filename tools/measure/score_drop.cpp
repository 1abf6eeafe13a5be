// SPDX-License-Identifier: Apache-2.0
// The score that a model loses on a task against another.
#include "tools/measure/score_drop.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "bertcl/error.hpp"
#include "quant/calibration/samples.hpp"
#include "support/fail.hpp"
#include "tasks/evaluate.hpp"
#include "tasks/head_output.hpp"
#include "tasks/report.hpp"
#include "text/pad_token_id.hpp"
#include "text/run_rows.hpp"
#include "tools/models/task_model.hpp"
#include "tools/terminal/interruption.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {

std::vector<std::size_t> other_items(std::size_t total, const std::vector<std::size_t>& taken,
                                     std::size_t limit) {
  const std::set<std::size_t> skipped(taken.begin(), taken.end());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < total; ++i)
    if (!skipped.contains(i)) left.push_back(i);
  if (left.empty())
    throw Error(
        "no data left to measure the score on: calibration uses all of it; reduce --samples, or "
        "give other data with --drop-data FILE");
  std::vector<std::size_t> chosen;
  for (const std::size_t i : quant::spread(left.size(), limit)) chosen.push_back(left[i]);
  return chosen;
}

squad::Dataset some_questions(const squad::Dataset& dataset,
                              const std::vector<std::size_t>& indices) {
  squad::Dataset chosen{dataset.version_2, dataset.contexts, {}};
  for (const std::size_t i : indices) chosen.questions.push_back(dataset.questions[i]);
  return chosen;
}

ScoreMeasure task_measure(std::shared_ptr<const tasks::Task> task, const text::Tokenizer& tokenizer,
                          int max_length, const std::string& origin) {
  const auto measure = [task, &tokenizer, max_length, origin](
                           runtime::Session& session, const std::string& what) -> TaskScore {
    TaskModel model(session, task->head());
    tasks::EvaluateOptions evaluate;
    evaluate.encode.max_length = max_length;
    evaluate.origin = origin;
    evaluate.batches = tasks::usual_batches(task->head());
    model.bound(evaluate.batches);
    const std::string title = tasks::metric_title(task->main_metric());
    Progress progress(title + " of the " + what, progress_unit(*task));
    const auto output = [&](const text::Batch& batch) {
      throw_if_interrupted();
      return model(batch);
    };
    const tasks::Evaluation evaluation =
        tasks::evaluate(*task, tokenizer, evaluate, output,
                        [&](const tasks::Progress& now) { progress.update(now.done, now.total); });
    const auto metric =
        std::ranges::find(evaluation.metrics, task->main_metric(), &tasks::Metric::name);
    return {title, metric->value * (metric->is_correlation ? 100.0 : 1.0)};
  };
  return {task->size(), task->unit(), measure};
}

ScoreMeasure naming_items(ScoreMeasure measure, const std::string& origin,
                          std::vector<std::size_t> items) {
  const auto named = [inner = std::move(measure.measure), unit = measure.unit, origin,
                      items = std::move(items)](runtime::Session& session,
                                                const std::string& what) -> TaskScore {
    try {
      return inner(session, what);
    } catch (const text::NonfiniteOutput& error) {
      fail(
          "{}: the {} returned NaN or infinity for item {} of the {}, counted from 0, so "
          "the drop cannot be measured; exclude nodes (--exclude), fix the model, or give other "
          "data with --drop-data FILE",
          origin, what, items.at(error.item()), unit);
    }
  };
  return {measure.items, measure.unit, named};
}

ScoreDrop::ScoreDrop(const std::filesystem::path& model, const std::string& device,
                     ScoreMeasure measure)
    : measure_(std::move(measure)) {
  runtime::SessionOptions options;
  options.device = device;
  options.pad_token_id = [&] { return text::read_pad_token_id(model); };
  auto session = runtime::Session::load(model, options);
  context_ = session.shared_context();
  float_score_ = measure_.measure(session, "float model");
  if (!std::isfinite(float_score_.points))
    fail("{}: its {} is undefined on these {} {}, so no drop can be measured", model.string(),
         float_score_.name, measure_.items, measure_.unit);
}

double ScoreDrop::operator()(const quant::Model& model) {
  runtime::SessionOptions options;
  options.context = context_;
  auto session = model.session(options);
  return float_score_.points - measure_.measure(session, "quantized model").points;
}

}  // namespace bertcl::tools
