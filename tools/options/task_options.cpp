// SPDX-License-Identifier: Apache-2.0
// The task of a command's data, and how it is created.
#include "tools/options/task_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "squad/dataset.hpp"
#include "tasks/readers.hpp"
#include "text/json_file.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/option_checks.hpp"

namespace bertcl::tools {
namespace {

/// ["O", "B-person"], which finetune.py writes into the metadata of a model.
std::vector<std::string> read_classes(const std::filesystem::path& model) {
  const auto metadata = onnx_io::read_metadata(model);
  const auto found = metadata.find("bertcl.classes");
  if (found == metadata.end()) return {};
  const std::string place = model.string() + ": bertcl.classes in the metadata";
  const nlohmann::json names = text::parse_json(found->second, place);
  const auto is_name = [](const nlohmann::json& name) { return name.is_string(); };
  if (!names.is_array() || !std::all_of(names.begin(), names.end(), is_name))
    throw Error(place + R"( must be a list ["..", ..] of the names of all classes)");
  return names.get<std::vector<std::string>>();
}

/// {"id2label": {"0": "O", "1": "B-person"}} of Hugging Face's config.json.
std::vector<std::string> read_id2label(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  const nlohmann::json config = text::read_json(path);
  if (!config.is_object() || !config.contains("id2label")) return {};
  const nlohmann::json& names = config["id2label"];
  const auto wrong = [&] {
    return Error(path.string() +
                 R"(: id2label must be an object {"0": "..", "1": "..", ..} of all classes)");
  };
  if (!names.is_object()) throw wrong();
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = names.find(std::to_string(i));
    if (found == names.end() || !found->is_string()) throw wrong();
    labels.push_back(found->get<std::string>());
  }
  const auto made_up = [](const std::string& label) { return label.starts_with("LABEL_"); };
  return std::all_of(labels.begin(), labels.end(), made_up) ? std::vector<std::string>() : labels;
}

/// Texts of any kind: the contexts of a SQuAD file, or the lines of another.
std::vector<std::string> read_texts(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return tasks::read_lines(path);
  return squad::load_dataset(path).contexts;
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
                              const std::string& data_help) {
  one_of(command.add_option("--task", options.name, "Task of the data"),
         {"squad", "sst2", "movie-reviews", "stsb", "wnut17", "mlm"});
  return input_file(command.add_option("--data", options.data, data_help))->type_name("FILE");
}

CLI::Option* add_labels_option(CLI::App& command, TaskOptions& options) {
  return input_file(
             command.add_option(
                 "--labels", options.labels,
                 "The model's class names in output order, or a file with one per line. By "
                 "default\nthose that finetune.py wrote into the model, or id2label of config.json "
                 "beside it;\nelse, for sst2 and movie-reviews, negative,positive"))
      ->type_name("LABEL,...");
}

void check_labels(const TaskOptions& options) {
  const bool fits =
      options.name == "sst2" || options.name == "movie-reviews" || options.name == "wnut17";
  if (!options.labels.empty() && !fits)
    throw Error(
        fmt::format("--labels is for --task sst2, movie-reviews or wnut17, not {}", options.name));
}

std::vector<std::string> find_labels(const TaskOptions& options,
                                     const std::vector<std::filesystem::path>& models) {
  if (!options.labels.empty()) {
    if (options.labels.find(',') == std::string::npos) return tasks::read_lines(options.labels);
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
      origin = model.parent_path() / "config.json";
      read = read_id2label(origin);
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

void check_labels_are_known(const TaskOptions& options,
                            const std::vector<std::filesystem::path>& models) {
  if (options.is_squad()) return;
  const std::vector<std::string> labels = find_labels(options, models);
  if (options.name == "wnut17") tasks::check_tags_are_known(labels);
}

std::unique_ptr<tasks::Task> load_task(const TaskOptions& options,
                                       const std::vector<std::string>& labels,
                                       const text::WordPieceTokenizer& tokenizer,
                                       const ItemChoice& choice) {
  const std::string& data = options.data;
  if (options.name == "sst2")
    return tasks::polarity_task(chosen(tasks::read_sst2(data), choice), "texts", {"0", "1"},
                                labels);
  if (options.name == "movie-reviews")
    return tasks::polarity_task(chosen(tasks::read_movie_reviews(data), choice), "reviews",
                                {"neg", "pos"}, labels);
  if (options.name == "stsb") return tasks::similarity_task(chosen(tasks::read_stsb(data), choice));
  if (options.name == "wnut17")
    return tasks::tagging_task(chosen(tasks::read_conll(data), choice), labels);
  if (options.name == "mlm")
    return tasks::masked_task(chosen(read_texts(data), choice), tokenizer.vocabulary_size());
  throw Error(fmt::format("unknown task '{}'", options.name));
}

std::unique_ptr<tasks::Task> load_texts(const TaskOptions& options,
                                        const text::WordPieceTokenizer& tokenizer) {
  if (options.name != "wnut17") return load_task(options, {}, tokenizer);
  std::vector<tasks::TaggedSentence> sentences = tasks::read_conll(options.data);
  std::set<std::string> tags;
  for (const tasks::TaggedSentence& sentence : sentences)
    tags.insert(sentence.tags.begin(), sentence.tags.end());
  return tasks::tagging_task(std::move(sentences), {tags.begin(), tags.end()});
}

}  // namespace bertcl::tools
