// SPDX-License-Identifier: Apache-2.0
// What each quantized op costs, and which ones stay in float for it.
#include "tools/op_choice.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "bertcl/pending_file.hpp"
#include "quant/accuracy/output_error.hpp"
#include "tools/f1_drop.hpp"
#include "tools/file_options.hpp"
#include "tools/interruption.hpp"
#include "tools/option_checks.hpp"
#include "tools/output.hpp"
#include "tools/progress.hpp"
#include "tools/sensitivity.hpp"

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

/// F1 on questions that the model was not calibrated on.
F1Drop f1_drop(const quant::Options& quantizer, const CalibrationQuestions& questions,
               const OpChoiceOptions& options) {
  return {quantizer.model, quantizer.device,
          options.drop_data.empty()
              ? other_questions(*questions.dataset, questions.chosen, options.drop_limit)
              : other_questions(squad::load_dataset(options.drop_data), {}, options.drop_limit),
          questions.tokenizer, questions.features};
}

}  // namespace

void add_op_choice_options(CLI::App& command, OpChoiceOptions& options) {
  const char* group = "What each op costs";
  command
      .add_flag("--sensitivity", options.sensitivity,
                "Show by how much each quantized op, kind and layer changes the outputs, the most\n"
                "costly first")
      ->group(group);
  output_file(
      command.add_option("--sensitivity-plot", options.plot, "Show it, and draw it as a picture"))
      ->type_name("FILE.svg")
      ->group(group);
  positive(command, "--sensitivity-samples", options.samples,
           "Questions to measure it on, of those to calibrate on")
      ->group(group);
  auto* drop =
      any_number(command, "--max-drop", options.max_drop,
                 "Leave the most costly ops in float, as few as keep F1 on SQuAD within X\n"
                 "points of the float model's; for other tasks there is --max-error",
                 "X")
          ->group(group);
  any_number(command, "--max-error", options.max_error,
             "The same by the relative error of the outputs, for any model; on the questions of\n"
             "--sensitivity-samples",
             "PERCENT")
      ->excludes(drop)
      ->group(group);
  input_file(command.add_option(
                 "--drop-data", options.drop_data,
                 "SQuAD file to measure F1 on; by default the questions of --data that are not\n"
                 "calibrated on"))
      ->type_name("FILE")
      ->needs(drop)
      ->group(group);
  not_negative(command, "--drop-limit", options.drop_limit,
               "Questions to measure F1 on, spread over the file; 0 is all")
      ->needs(drop)
      ->group(group);
}

void check_op_choice_options(const OpChoiceOptions& options, bool has_data, bool is_squad) {
  if (options.wanted() && !has_data)
    throw Error("what ops cost is measured on questions: give --data FILE");
  if (options.max_drop && !is_squad)
    throw Error("--max-drop is measured by F1 on SQuAD; bound another task's model by --max-error");
  if (!options.drop_data.empty()) check_readable(options.drop_data);
}

OpChoice choose_ops(const quant::CalibratedModel& model, const CalibrationQuestions& questions,
                    const OpChoiceOptions& options) {
  const auto samples = some_of(questions.samples, options.samples);
  const quant::Options& quantizer = model.options();
  OpChoice choice;
  choice.ops = model.ops();
  std::optional<F1Drop> f1;  // first: it refuses a model that answers no questions
  if (options.max_drop) f1.emplace(f1_drop(quantizer, questions, options));
  choice.sensitivity = measure(model, samples);
  if (!options.plot.empty())
    write_file(options.plot,
               sensitivity_svg(choice.sensitivity, choice.ops, quantizer.output.string()));
  const auto order = [&](bool defer) { return choice.sensitivity.order(defer); };
  if (f1) {
    choice.unit = "F1";
    choice.bound = fmt::format("{} F1", *options.max_drop);
    choice.questions = f1->questions();
    choice.float_f1 = f1->float_f1();
    choice.drop = quant::find_max_drop(model, order, *options.max_drop, std::ref(*f1));
  } else if (options.max_error) {
    choice.unit = "%";
    choice.bound = fmt::format("{} %", *options.max_error);
    choice.questions = samples.size();
    const quant::OutputError error(quantizer.model, quantizer.device, samples);
    choice.drop = quant::find_max_drop(model, order, *options.max_error,
                                       [&](const std::filesystem::path& path) {
                                         throw_if_interrupted();
                                         return 100.0 * error(path);
                                       });
  }
  return choice;
}

std::map<std::size_t, std::string> OpChoice::left() const {
  std::map<std::size_t, std::string> reasons;
  if (!drop) return reasons;
  for (const std::size_t op : drop->left)
    reasons[op] = fmt::format(
        "to keep the drop within {}: quantized alone it changes the outputs by {:.3f} %", bound,
        100.0 * sensitivity.alone(op, drop->deferred));
  return reasons;
}

std::string text_of(const OpChoice& choice) {
  std::string text = sensitivity_text(choice.sensitivity, choice.ops);
  if (!choice.drop) return text;
  Table table({">ops in float", "Softmax", ">drop"});
  for (const quant::DropStep& step : choice.drop->steps)
    table.add({std::to_string(step.left), step.deferred ? "deferred" : "as asked for",
               fmt::format("{:.3f} {}", step.drop, choice.unit)});
  text += "\nDrop on " + counted(static_cast<std::int64_t>(choice.questions), "questions");
  if (choice.float_f1)
    text += fmt::format(", where the float model has F1 {:.3f}", *choice.float_f1);
  return text + fmt::format("; at most {} is kept by {} of {} ops in float{}: {:.3f} {}\n\n{}",
                            choice.bound, choice.drop->left.size(), choice.ops.size(),
                            choice.drop->deferred ? " and deferred Softmax" : "", choice.drop->drop,
                            choice.unit, table.str());
}

nlohmann::ordered_json to_json(const OpChoice& choice) {
  nlohmann::ordered_json json = {{"sensitivity", sensitivity_json(choice.sensitivity, choice.ops)}};
  if (!choice.drop) return json;
  auto left = nlohmann::ordered_json::array();
  for (const std::size_t op : choice.drop->left) left.push_back(choice.ops[op].node);
  auto steps = nlohmann::ordered_json::array();
  for (const quant::DropStep& step : choice.drop->steps)
    steps.push_back(
        {{"left_in_float", step.left}, {"deferred", step.deferred}, {"drop", step.drop}});
  json["max_drop"] = {{"bound", choice.bound},
                      {"unit", choice.unit},
                      {"drop", choice.drop->drop},
                      {"deferred", choice.drop->deferred},
                      {"questions", choice.questions},
                      {"left_in_float", left},
                      {"steps", steps}};
  if (choice.float_f1) json["max_drop"]["float_f1"] = *choice.float_f1;
  return json;
}

}  // namespace bertcl::tools
