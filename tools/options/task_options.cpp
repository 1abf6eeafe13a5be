// SPDX-License-Identifier: Apache-2.0
// The task of a command's data, and how it is created.
#include "tools/options/task_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "squad/dataset.hpp"
#include "tasks/model_config.hpp"
#include "tasks/question_paragraphs.hpp"
#include "tasks/readers.hpp"
#include "text/companion_files.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/options/text_option.hpp"

namespace bertcl::tools {
namespace {

std::vector<std::string> read_classes(const std::filesystem::path& model) {
  const auto metadata = onnx_io::read_metadata(model);
  const auto found = metadata.find(tasks::kClassNamesKey);
  if (found == metadata.end()) return {};
  return tasks::parse_class_names(
      found->second, fmt::format("{}: {} in the metadata", model.string(), tasks::kClassNamesKey));
}

std::filesystem::path config_of(const std::filesystem::path& model) {
  return text::companion_file(model, "config.json");
}

/// Texts of any kind: the contexts of a SQuAD file, or those of another.
std::vector<tasks::NamedText> read_any_texts(const std::string& path, tasks::IdRule rule) {
  if (std::filesystem::path(path).extension() != ".json")
    return tasks::read_named_texts(path, rule);
  return tasks::without_ids(squad::load_dataset(path).contexts);
}

/// Of a SQuAD file.
tasks::QuestionParagraphs questions_of(const std::string& path) {
  tasks::QuestionParagraphs data = tasks::answered_questions(squad::load_dataset(path));
  if (data.questions.empty()) throw Error(path + ": holds no question with an answer");
  return data;
}

template <class Item>
std::vector<Item> chosen(std::vector<Item> items, const ItemChoice& choice) {
  if (!choice) return items;
  std::vector<Item> some;
  for (const std::size_t i : choice(items.size())) some.push_back(std::move(items[i]));
  return some;
}

}  // namespace

CLI::Option* add_task_options(CLI::App& command, TaskOptions& options,
                              const std::vector<std::string>& tasks, const std::string& data_help,
                              const std::string& names) {
  one_of(command.add_option("--task", options.name, "What the data are for"), tasks);
  return input_file(command.add_option(names, options.data, data_help))->type_name("FILE");
}

CLI::Option* add_labels_option(CLI::App& command, TaskOptions& options) {
  return input_file(command.add_option(
                        "--labels", options.labels,
                        "What the classes of the model stand for, in their order; or a file with "
                        "one on\n"
                        "each line. By default as finetune.py wrote them into the model, or "
                        "id2label of\n"
                        "config.json beside it"))
      ->type_name("LABEL,...");
}

void check_labels(const TaskOptions& options) {
  if (!options.labels.empty() && options.name != kClassify && options.name != kTag)
    throw Error(fmt::format("--labels goes with --task {} or {}, not with {}", kClassify, kTag,
                            options.name));
}

std::vector<std::string> find_labels(const TaskOptions& options,
                                     const std::vector<std::filesystem::path>& models) {
  if (!options.labels.empty()) {
    if (options.labels.find(',') == std::string::npos) return tasks::read_texts(options.labels);
    if (const std::string fault = text_fault(options.labels); !fault.empty())
      throw Error("--labels: " + fault);
    std::vector<std::string> labels;
    std::istringstream list(options.labels);
    for (std::string label; std::getline(list, label, ',');) {
      const auto begin = label.find_first_not_of(' '), end = label.find_last_not_of(' ');
      labels.push_back(begin == std::string::npos ? "" : label.substr(begin, end - begin + 1));
      if (labels.back().empty())
        throw Error(fmt::format("--labels '{}': a class has no name", options.labels));
      if (std::find(labels.begin(), labels.end() - 1, labels.back()) != labels.end() - 1)
        throw Error(fmt::format("--labels lists '{}' twice", labels.back()));
    }
    return labels;
  }
  std::vector<std::string> labels;
  std::filesystem::path from;
  for (const std::filesystem::path& model : models) {
    std::filesystem::path origin = model;
    std::vector<std::string> read = read_classes(model);
    if (read.empty()) {
      origin = config_of(model);
      read = tasks::read_model_config(origin).labels;
    }
    if (read.empty() || read == labels) continue;
    if (!labels.empty())
      throw Error(
          fmt::format("{} and {} name their classes differently, but all models share one list: "
                      "evaluate them separately, or give --labels",
                      from.string(), origin.string()));
    labels = std::move(read);
    from = origin;
  }
  return labels;
}

std::optional<bool> find_multi_label(const std::vector<std::filesystem::path>& models) {
  std::optional<bool> found;
  for (const std::filesystem::path& model : models) {
    const auto own = tasks::read_model_config(config_of(model)).multi_label;
    if (own && found && *own != *found)
      throw Error(
          fmt::format("{}: the problem_type in its config.json differs from that of an earlier "
                      "model; evaluate them separately",
                      model.string()));
    if (own) found = own;
  }
  return found;
}

void check_labels_are_known(const TaskOptions& options,
                            const std::vector<std::filesystem::path>& models) {
  if (options.is_squad()) return;
  const std::vector<std::string> labels = find_labels(options, models);
  if (options.name == kTag) tasks::check_tags_are_known(labels);
}

std::unique_ptr<tasks::Task> load_task(const TaskOptions& options,
                                       const std::vector<std::string>& labels,
                                       std::optional<bool> multi_label,
                                       const text::Tokenizer& tokenizer, const ItemChoice& choice,
                                       tasks::IdRule rule) {
  const std::string& data = options.data;
  if (options.name == kClassify) {
    const std::string unit = tasks::holds_movie_reviews(data) ? "reviews" : "texts";
    return tasks::classify_task(chosen(tasks::read_classified(data, rule), choice), unit, labels,
                                multi_label);
  }
  if (options.name == kSimilarity)
    return tasks::similarity_task(chosen(tasks::read_scored_pairs(data, rule), choice),
                                  options.embeds);
  if (options.name == kRetrieval) return tasks::retrieval_task(questions_of(data), options.prompts);
  if (options.name == kReranking) return tasks::reranking_task(questions_of(data));
  if (options.name == kTag)
    return tasks::tagging_task(chosen(tasks::read_tagged(data, rule), choice), labels);
  if (options.name == kFillMask)
    return tasks::masked_task(chosen(read_any_texts(data, rule), choice),
                              tokenizer.vocabulary_size());
  throw Error(fmt::format("unknown task '{}'", options.name));
}

std::unique_ptr<tasks::Task> load_texts(const TaskOptions& options,
                                        const text::Tokenizer& tokenizer) {
  const auto rule = tasks::IdRule::any;
  std::set<std::string> labels;  // of the data, in any order
  if (options.name == kTag)
    for (const tasks::TaggedSentence& sentence : tasks::read_tagged(options.data, rule))
      labels.insert(sentence.tags.begin(), sentence.tags.end());
  if (options.name == kClassify)
    for (const tasks::ClassifiedText& text : tasks::read_classified(options.data, rule)) {
      if (text.labels)
        labels.insert(text.labels->begin(), text.labels->end());
      else
        labels.insert(text.label);
    }
  return load_task(options, {labels.begin(), labels.end()}, {}, tokenizer, {}, rule);
}

}  // namespace bertcl::tools
