// SPDX-License-Identifier: Apache-2.0
// bertcl classify: the classes of texts, or of pairs of texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/port.hpp"
#include "runtime/task.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "tasks/model_files/model_config.hpp"
#include "tasks/scores/class_scores.hpp"
#include "text/base/companion_files.hpp"
#include "tools/models/activation.hpp"
#include "tools/models/text_model.hpp"
#include "tools/models/texts_run.hpp"
#include "tools/options/task_options.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

using tasks::Activation;

constexpr const char* kSoftmax = "softmax";
constexpr const char* kSigmoid = "sigmoid";
constexpr const char* kNone = "none";
const Choices<Activation> kActivations = {
    {kSoftmax, Activation::softmax}, {kSigmoid, Activation::sigmoid}, {kNone, Activation::none}};

struct ClassifyOptions : TextsOptions {
  TaskOptions task;  // its labels
  std::string activation;
  std::optional<std::size_t> top_k;
};

/// As the options say, else config.json, else the number of classes.
std::string activation_of(const ClassifyOptions& options, std::size_t classes) {
  if (!options.activation.empty()) return options.activation;
  const tasks::ModelConfig config =
      tasks::read_model_config(text::companion_file(options.model, "config.json"));
  if (config.is_regression) return kNone;
  if (config.multi_label.value_or(false)) return kSigmoid;
  if (classes > 1) return kSoftmax;
  return applies_sigmoid(options.model) ? kSigmoid : kNone;
}

/// The classes that have names; else any number of them, where the output is one of classes.
tasks::Head head_of(const runtime::Session& session, const std::vector<std::string>& labels) {
  if (!labels.empty())
    return {false, labels.size(), false,
            fmt::format("{}: {}", counted(std::ssize(labels), "classes"), fmt::join(labels, ", "))};
  if (runtime::task_of(session.plan()) != runtime::Task::text_classification)
    fail(
        "{}: the outputs are {}, none of them logits [batch, classes]; if one is, name its classes "
        "with --labels",
        session.path().string(), fmt::join(ir::describe(session.outputs()), ", "));
  return {false, 1, true, "1 class or more"};
}

/// An empty second text is none, as for the pipeline of transformers.
std::optional<std::string> second_of(const InputText& text) {
  return text.second == "" ? std::nullopt : text.second;
}

int run_classify(const ClassifyOptions& options) {
  check_one_reads_input(options, options.task.labels);
  TextsRun run(options);
  if (!meets_requirement(run.session(), options)) return kCheckFailed;
  const std::vector<std::string> labels = find_labels(options.task, {options.model});
  const auto name_of = [&](std::size_t label) {
    return labels.empty() ? fmt::format("LABEL_{}", label) : labels[label];
  };
  std::string activation;
  std::vector<std::vector<tasks::ClassScore>> best(run.texts().size());
  run.run(
      head_of(run.session(), labels),
      [&](const InputText& text, int max_length) {
        return tasks::encode_text(text.text, second_of(text), run.tokenizer(), max_length);
      },
      [&](std::size_t index, std::span<const float> logits) {
        if (activation.empty()) activation = activation_of(options, logits.size());
        const auto scores = tasks::class_scores(logits, chosen(kActivations, activation));
        best[index] = tasks::best_classes(scores, options.top_k.value_or(1));
      });
  const bool ids = std::ranges::any_of(run.texts(), [](const auto& t) { return !t.id.empty(); });
  std::vector<std::string> head = {">score", "label", "text"};
  if (ids) head.insert(head.begin() + 2, "id");
  Table table(head);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < best.size(); ++i) {
    const InputText& text = run.texts()[i];
    nlohmann::ordered_json of_text = json_of(text);
    of_text["labels"] = nlohmann::ordered_json::array();
    for (const tasks::ClassScore& each : best[i]) {
      std::vector<std::string> row = {
          fmt::format("{:.4f}", each.score), name_of(each.label),
          second_of(text) ? text.text + " | " + *text.second : text.text};
      if (ids) row.insert(row.begin() + 2, text.id);
      table.add(std::move(row));
      of_text["labels"].push_back({{"label", name_of(each.label)}, {"score", each.score}});
    }
    results.push_back(std::move(of_text));
  }
  if (options.prints_text()) print_text("{}", table.str());
  run.report({{"activation", activation}}, std::move(results));
  return kOk;
}

}  // namespace

void add_classify(CLI::App& program, Action& action) {
  const auto options = std::make_shared<ClassifyOptions>();
  CLI::App* command = add_texts_command(
      program, "classify",
      "Classify texts, or pairs of texts\n\n"
      "Texts are the lines of TEXTS or of standard input, or JSON lines {\"text\": \"..\"} with "
      "text_pair for two texts, and id. Scores are the softmax of the logits; where problem_type "
      "in config.json beside the model says so, the sigmoid of each (multi-label) or the logits "
      "(regression). A single logit is taken as bertcl rerank does.",
      "bertcl classify model.onnx reviews.txt --top-k 2", "ONNX model with logits [batch, classes]",
      *options);
  positive(*command, "--top-k", options->top_k, "The best N classes of each text; by default 1");
  one_of(command->add_option("--activation", options->activation,
                             "Activation applied to the logits; by default as above"),
         names_of(kActivations));
  add_labels_option(*command, options->task);
  command->callback([options, &action] { action = [options] { return run_classify(*options); }; });
}

}  // namespace bertcl::tools
