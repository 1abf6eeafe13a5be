// SPDX-License-Identifier: Apache-2.0
// The task of a command's data, and how it is created.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/cli_forward.hpp"
#include "tasks/load.hpp"
#include "tasks/task.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

using tasks::kClassify;
using tasks::kFillMask;
using tasks::kQuestionAnswering;
using tasks::kReranking;
using tasks::kRetrieval;
using tasks::kSimilarity;
using tasks::kTag;
using tasks::kText;

struct TaskOptions {
  std::string name = kQuestionAnswering;
  std::string data;
  bool embeds = false;  ///< by a vector of each text, not a score of the pair
  tasks::RetrievalPrompts prompts;
  std::string labels;  ///< "O,B-person,..", or a file with one on each line; empty: the models'

  bool is_squad() const { return name == kQuestionAnswering; }
};

/// --task, one of `tasks`, and --data with `data_help`; `names` of --data if not that alone.
CLI::Option* add_task_options(CLI::App& command, TaskOptions& options,
                              const std::vector<std::string>& tasks, const std::string& data_help,
                              const std::string& names = "--data");

/// --labels
CLI::Option* add_labels_option(CLI::App& command, TaskOptions& options);

/// Throws Error if there are labels that the task does not use, or come from where the data do.
void check_labels(const TaskOptions& options);

/// The labels of the models' classes in their order: those of the options; else those that the
/// models name, in their metadata (finetune.py) or as "id2label" in the config.json beside them;
/// else none. The names that Hugging Face makes up (LABEL_0, ..) are none.
/// Throws Error if two models name them differently.
std::vector<std::string> find_labels(const TaskOptions& options,
                                     const std::vector<std::filesystem::path>& models);

/// Whether the models' texts may be of several classes, as "problem_type" in the config.json beside
/// them says; none if it does not. Throws Error if two models differ.
std::optional<bool> find_multi_label(const std::vector<std::filesystem::path>& models);

/// Call it before the data are read. Throws Error as find_labels(), and where the score needs
/// labels that it does not find.
void check_labels_are_known(const TaskOptions& options,
                            const std::vector<std::filesystem::path>& models);

/// tasks::load_task() with what the models say of their classes.
std::unique_ptr<tasks::Task> load_task(const TaskOptions& options,
                                       const std::vector<std::filesystem::path>& models,
                                       const text::Tokenizer& tokenizer,
                                       const tasks::ItemChoice& choice = {});

}  // namespace bertcl::tools
