// SPDX-License-Identifier: Apache-2.0
// The cost of each quantized op, and the ops left in float because of it.
#include "tools/measure/op_choice.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bertcl/error.hpp"
#include "quant/analysis/output_error.hpp"
#include "support/option_checks.hpp"
#include "tools/measure/score_drop.hpp"
#include "tools/measure/sensitivity.hpp"
#include "tools/options/file_options.hpp"
#include "tools/terminal/interruption.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"

namespace bertcl::tools {
namespace {

std::vector<quant::Sample> some_of(const std::vector<quant::Sample>& samples, std::size_t wanted) {
  std::vector<quant::Sample> chosen;
  for (const std::size_t i : quant::spread(samples.size(), wanted)) chosen.push_back(samples[i]);
  return chosen;
}

quant::Sensitivity measure(const quant::CalibratedModel& model,
                           const std::vector<quant::Sample>& samples) {
  Progress progress("sensitivity", "models");
  return quant::measure_sensitivity(model, samples, [&](std::size_t done, std::size_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  });
}

/// The task's score on data that the model was not calibrated on.
ScoreDrop score_drop(const quant::Options& quantizer, const CalibrationData& data,
                     const OpChoiceOptions& options) {
  const bool same = options.drop_data.empty();
  std::vector<std::size_t> items;
  const tasks::ItemChoice others = [&](std::size_t total) {
    items =
        other_items(total, same ? data.chosen : std::vector<std::size_t>{}, options.drop_samples);
    return items;
  };
  TaskOptions task = data.task;
  if (!same) task.data = options.drop_data;
  std::shared_ptr<const tasks::Task> scored;
  if (task.is_squad()) {
    std::optional<squad::Dataset> other;
    const squad::Dataset& questions =
        same ? *data.dataset : other.emplace(squad::load_dataset(task.data));
    scored = tasks::questions_task(std::make_shared<const squad::Dataset>(some_questions(
                                       questions, others(questions.questions.size()))),
                                   {data.features, {}});
  } else {
    scored = load_task(task, {quantizer.model}, data.tokenizer, others);
  }
  ScoreMeasure measure =
      task_measure(scored, data.tokenizer, data.features.max_seq_length, task.data);
  return {quantizer.model, quantizer.device,
          naming_items(std::move(measure), task.data, std::move(items))};
}

}  // namespace

void add_op_choice_options(CLI::App& command, OpChoiceOptions& options, TaskOptions& task) {
  const OptionGroup group(command, "Quantization sensitivity of each op");
  command.add_flag(
      "--sensitivity", options.sensitivity,
      "Show how much quantizing each op, kind and layer changes the outputs, most sensitive first");
  output_file(command.add_option("--sensitivity-plot", options.plot,
                                 "Show the sensitivity, and plot it as SVG"),
              OutputFileKind::picture)
      ->type_name("FILE.svg");
  positive(command, "--sensitivity-samples", options.samples,
           "Calibration questions or texts to measure sensitivity on; by default 16");
  auto* drop = any_number(
      command, "--max-drop", options.max_drop,
      "Leave just enough of the most sensitive ops in float to keep the task's score within X "
      "points of the float model's: F1, accuracy, or Pearson's correlation x 100",
      "X");
  not_negative(command, "--max-error", options.max_error,
               "As --max-drop, by the relative error of the outputs, for any model; on the samples "
               "of --sensitivity-samples",
               "PERCENT")
      ->excludes(drop);
  input_file(command.add_option("--drop-data", options.drop_data,
                                "File of the same task to measure the score on; by default the "
                                "part of --data not used for calibration"))
      ->needs(drop);
  not_negative(command, "--drop-samples", options.drop_samples,
               "Questions or texts to measure the score on, spread over the file; 0 is all")
      ->needs(drop);
  add_labels_option(command, task)->needs(drop);
}

void check_op_choice_options(const OpChoiceOptions& options, const TaskOptions& task,
                             const std::filesystem::path& model) {
  if (options.samples && !options.wanted())
    throw Error(
        "--sensitivity-samples has no effect without --sensitivity, --sensitivity-plot, --max-drop "
        "or --max-error");
  if (options.wanted() && task.data.empty())
    throw Error("sensitivity is measured on questions or texts: give --data FILE");
  check_labels(task);
  if (options.max_drop && task.name == kText)
    throw Error(
        "--max-drop needs the score of a task, and --task text has none: give --max-error, or the "
        "task of the model and its data");
  if (options.max_drop) check_labels_are_known(task, {model});
  if (!options.drop_data.empty()) check_readable(options.drop_data);
}

OpChoice choose_ops(const quant::CalibratedModel& model, const CalibrationData& data,
                    const OpChoiceOptions& options, WrittenFiles& written) {
  const auto samples = some_of(data.samples, options.samples.value_or(16));
  const quant::Options& quantizer = model.options();
  OpChoice choice;
  choice.ops = model.ops();
  std::optional<ScoreDrop> score;  // first: it refuses a model without the head of the task
  if (options.max_drop) score.emplace(score_drop(quantizer, data, options));
  if (options.shows_sensitivity()) choice.sensitivity = measure(model, samples);
  const auto order = [&](bool unnormalize) {
    if (!choice.sensitivity) choice.sensitivity = measure(model, samples);
    return choice.sensitivity->order(unnormalize);
  };
  if (score) {
    choice.unit = score->float_score().name;
    choice.bound = fmt::format("{} {}", *options.max_drop, choice.unit);
    choice.items = score->items();
    choice.items_unit = score->unit();
    choice.float_score = score->float_score().points;
    choice.drop = quant::find_float_fallback(
        model, order, {*options.max_drop, choice.loss(), choice.unit}, std::ref(*score));
  } else if (options.max_error) {
    choice.bounds_error = true;
    choice.unit = "%";
    choice.bound = fmt::format("{} %", *options.max_error);
    choice.items = samples.size();
    choice.items_unit = "samples";
    const quant::OutputError error(quantizer.model, model.device(), samples);
    choice.drop =
        quant::find_float_fallback(model, order, {*options.max_error, choice.loss(), choice.unit},
                                   [&](const quant::Model& part) {
                                     throw_if_interrupted();
                                     return 100.0 * error(part);
                                   });
  }
  if (!options.plot.empty())
    written.write(options.plot,
                  sensitivity_svg(*choice.sensitivity, choice.ops, quantizer.output.string()));
  return choice;
}

std::map<std::size_t, std::string> OpChoice::float_ops() const {
  std::map<std::size_t, std::string> reasons;
  if (!drop) return reasons;
  for (const std::size_t op : drop->float_ops)
    reasons[op] =
        fmt::format("to keep the {} within {}: quantized alone it changes the outputs by {:.3f} %",
                    loss(), bound, 100.0 * sensitivity->alone(op, drop->unnormalized));
  return reasons;
}

std::string text_of(const OpChoice& choice) {
  std::string text;
  if (choice.sensitivity) text += sensitivity_text(*choice.sensitivity, choice.ops);
  if (!choice.drop) return text;
  Table table({">ops in float", "Softmax", fmt::format(">{}", choice.loss())});
  for (const quant::FallbackTrial& step : choice.drop->steps)
    table.add({std::to_string(step.float_ops), step.unnormalized ? "unnormalized" : "as asked for",
               fmt::format("{:.3f} {}", step.drop, choice.unit)});
  text += choice.bounds_error ? "\nError on " : "\nDrop on ";
  text += counted(static_cast<std::int64_t>(choice.items), choice.items_unit);
  if (choice.float_score)
    text += fmt::format(", where the float model has {} {:.3f}", choice.unit, *choice.float_score);
  return text +
         fmt::format("; the bound of {} is met with {} of {} ops in float{}: {:.3f} {}\n\n{}",
                     choice.bound, choice.drop->float_ops.size(), choice.ops.size(),
                     choice.drop->unnormalized ? " and unnormalized Softmax" : "",
                     choice.drop->drop, choice.unit, table.str());
}

nlohmann::ordered_json to_json(const OpChoice& choice) {
  nlohmann::ordered_json json;
  if (choice.sensitivity) json["sensitivity"] = sensitivity_json(*choice.sensitivity, choice.ops);
  if (!choice.drop) return json;
  auto left = nlohmann::ordered_json::array();
  for (const std::size_t op : choice.drop->float_ops) left.push_back(choice.ops[op].node);
  auto steps = nlohmann::ordered_json::array();
  for (const quant::FallbackTrial& step : choice.drop->steps)
    steps.push_back({{"left_in_float", step.float_ops},
                     {"unnormalized", step.unnormalized},
                     {"drop", step.drop}});
  json["max_drop"] = {{"bound", choice.bound},
                      {"unit", choice.unit},
                      {"drop", choice.drop->drop},
                      {"unnormalized", choice.drop->unnormalized},
                      {"questions", choice.items},
                      {"left_in_float", left},
                      {"steps", steps}};
  if (choice.float_score) {
    json["max_drop"]["float_score"] = *choice.float_score;
    if (choice.unit == "F1") json["max_drop"]["float_f1"] = *choice.float_score;
  }
  return json;
}

}  // namespace bertcl::tools
