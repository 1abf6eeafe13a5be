// SPDX-License-Identifier: Apache-2.0
// The task of a command's data, and how it is created.
#include "tools/options/task_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "tasks/data/readers.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/base/companion_files.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/text_option.hpp"

namespace bertcl::tools {

CLI::Option* add_task_options(CLI::App& command, TaskOptions& options,
                              const std::vector<std::string>& tasks, const std::string& data_help,
                              const std::string& names) {
  one_of(command.add_option("--task", options.name, "What the data are for"), tasks);
  return input_file(command.add_option(names, options.data, data_help));
}

CLI::Option* add_labels_option(CLI::App& command, TaskOptions& options) {
  return input_file(
             command.add_option("--labels", options.labels,
                                "Names of the model's classes, in the order of its output; or a "
                                "file with one on each line. By default as finetune.py wrote them "
                                "into the model, or id2label of config.json beside it"))
      ->type_name("LABEL,...");
}

void check_labels(const TaskOptions& options) {
  if (!options.labels.empty() && options.name != kClassify && options.name != kTag)
    fail("--labels is only valid with --task {} or {}, not with {}", kClassify, kTag, options.name);
  if (options.data == "-" && options.labels == "-")
    throw Error("--data and --labels both read standard input; name a file for one of them");
}

std::vector<std::string> find_labels(const TaskOptions& options,
                                     const std::vector<std::filesystem::path>& models) {
  if (!options.labels.empty()) {
    if (options.labels.find(',') == std::string::npos) return tasks::read_texts(options.labels);
    if (const std::string fault = text_fault(options.labels); !fault.empty())
      throw Error("--labels: " + fault);
    std::vector<std::string> labels;
    for (const std::string& label : tasks::split_labels(options.labels)) {
      if (label.empty()) fail("--labels '{}': empty class name", options.labels);
      if (std::ranges::find(labels, label) != labels.end())
        fail("--labels lists '{}' twice", label);
      labels.push_back(label);
    }
    return labels;
  }
  tasks::ClassNames found;
  for (const std::filesystem::path& model : models) {
    tasks::ClassNames own = tasks::find_class_names(onnx_io::read_metadata(model), model);
    if (own.names.empty() || own.names == found.names) continue;
    if (!found.names.empty())
      fail(
          "{} and {} name their classes differently, but all models share one list: "
          "evaluate them separately, or give --labels",
          found.origin.string(), own.origin.string());
    found = std::move(own);
  }
  return found.names;
}

std::optional<bool> find_multi_label(const std::vector<std::filesystem::path>& models) {
  std::optional<bool> found;
  for (const std::filesystem::path& model : models) {
    const auto own =
        tasks::read_model_config(text::companion_file(model, "config.json")).multi_label;
    if (own && found && *own != *found)
      fail(
          "{}: the problem_type in its config.json differs from that of an earlier "
          "model; evaluate them separately",
          model.string());
    if (own) found = own;
  }
  return found;
}

namespace {

/// Those of find_labels(). Throws Error that names a model where the task's score needs labels and
/// there are none.
std::vector<std::string> find_needed_labels(const TaskOptions& options,
                                            const std::vector<std::filesystem::path>& models) {
  std::vector<std::string> labels = find_labels(options, models);
  if (options.name == kTag)
    naming_model(models.front(), [&] { tasks::check_tags_are_known(labels); });
  return labels;
}

}  // namespace

void check_labels_are_known(const TaskOptions& options,
                            const std::vector<std::filesystem::path>& models) {
  if (!options.is_squad()) find_needed_labels(options, models);
}

std::unique_ptr<tasks::Task> load_task(const TaskOptions& options,
                                       const std::vector<std::filesystem::path>& models,
                                       const text::Tokenizer& tokenizer,
                                       const tasks::ItemChoice& choice) {
  return tasks::load_task({options.name, options.data, find_needed_labels(options, models),
                           find_multi_label(models), options.embeds, options.prompts},
                          tokenizer.vocabulary_size(), choice);
}

}  // namespace bertcl::tools
