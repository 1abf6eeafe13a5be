// SPDX-License-Identifier: Apache-2.0
// config.json, the classes in a model's metadata, and the longest text.
#include "tasks/model_files/model_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/model_in_memory.hpp"
#include "support/option_name.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"

namespace bertcl::tasks {
namespace {

/// {"0": "O", "1": "B-person"}; names that are numbers are read as text.
std::vector<std::string> labels_of(const nlohmann::json& names, const std::string& place) {
  const auto wrong = [&] {
    return Error(place +
                 R"(: id2label must be an object {"0": "..", "1": "..", ..} of all classes)");
  };
  if (!names.is_object()) throw wrong();
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = names.find(std::to_string(i));
    if (found == names.end() || (!found->is_string() && !found->is_number())) throw wrong();
    labels.push_back(found->is_string() ? found->get<std::string>() : found->dump());
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != "LABEL_" + std::to_string(i)) return labels;
  return {};  // they were made up
}

/// ["O", "B-person"], which finetune.py writes into the metadata of a model.
std::vector<std::string> parse_class_names(std::string_view json, const std::string& place) {
  const nlohmann::json names = text::parse_json(json, place);
  const auto is_name = [](const nlohmann::json& name) { return name.is_string(); };
  if (!names.is_array() || !std::ranges::all_of(names, is_name))
    throw Error(place + R"( must be a list ["..", ..] of the names of all classes)");
  return names.get<std::vector<std::string>>();
}

constexpr int kNoLimit = 1'000'000;  // tokens; tokenizers without one say 1e30

/// Architectures whose first positions are those of padding.
constexpr std::array<std::string_view, 8> kPaddedPositions = {
    "roberta", "xlm-roberta",   "xlm-roberta-xl",       "camembert",
    "mpnet",   "data2vec-text", "roberta-prelayernorm", "xmod"};

std::optional<int> positions_of(const text::JsonNode& config) {
  const auto positions = config.find("max_position_embeddings");
  if (!positions) return std::nullopt;
  std::int64_t length = positions->integer();
  const auto type = config.find("model_type");
  if (type && std::ranges::find(kPaddedPositions, type->string()) != kPaddedPositions.end()) {
    const auto padding = config.find("pad_token_id");
    length -= (padding ? padding->integer() : 1) + 1;
  }
  if (length < 1 || length >= kNoLimit) return std::nullopt;
  return static_cast<int>(length);
}

constexpr const char* kClassNamesKey = "bertcl.classes";  // of a model's metadata

}  // namespace

ModelConfig read_model_config(const std::filesystem::path& path) {
  ModelConfig config;
  if (!text::is_present(path)) return config;
  const nlohmann::json json = text::read_json(path);
  if (!json.is_object()) return config;
  const std::string origin = path.string();
  config.positions = positions_of(text::JsonNode(json, origin));
  const auto problem = json.find("problem_type");
  if (problem == json.end() || !problem->is_string()) return config;
  config.is_regression = *problem == "regression";
  if (!config.is_regression) config.multi_label = *problem == "multi_label_classification";
  return config;
}

std::vector<std::string> read_labels(const std::filesystem::path& path) {
  if (!text::is_present(path)) return {};
  const nlohmann::json json = text::read_json(path);
  const bool has = json.is_object() && json.contains("id2label") && !json["id2label"].is_null();
  return has ? labels_of(json["id2label"], path.string()) : std::vector<std::string>();
}

std::optional<int> read_length(const text::JsonNode& node) {
  const double length = node.number();
  if (!(length >= 1) || length != std::floor(length))
    node.fail("is {}; expected a number of tokens", node.value().dump());
  return length < kNoLimit ? std::optional(static_cast<int>(length)) : std::nullopt;
}

std::optional<int> declared_length(const std::filesystem::path& model) {
  std::optional<int> length =
      read_model_config(text::companion_file(model, "config.json")).positions;
  const std::filesystem::path tokenizer = text::companion_file(model, "tokenizer_config.json");
  if (!text::is_present(tokenizer)) return length;
  const nlohmann::json json = text::read_json(tokenizer);
  const std::string origin = tokenizer.string();
  const text::JsonNode settings(json, origin);
  // The older name, which transformers takes where the newer one is absent.
  const auto limit =
      settings.find(json.contains("model_max_length") ? "model_max_length" : "max_len");
  const auto max_length = limit ? read_length(*limit) : std::nullopt;
  return length && max_length ? std::min(length, max_length) : length ? length : max_length;
}

void check_length(std::int64_t max_length, std::int64_t longest) {
  if (longest <= 0 || max_length <= longest) return;
  fail("sequences of {} tokens exceed the model's maximum of {}; use {}", max_length, longest,
       option_name("max-seq-length", std::to_string(longest)));
}

std::string read_activation(const std::filesystem::path& model) {
  const auto member = [&](const char* file, const std::vector<std::string>& path) -> std::string {
    const std::filesystem::path name = text::companion_file(model, file);
    if (!text::is_present(name)) return "";
    const nlohmann::json document = text::read_json(name);
    const std::string place = name.string();
    std::optional<text::JsonNode> node(std::in_place, document, place);
    for (const std::string& key : path)
      if (node) node = node->find(key);
    return node ? node->string() : "";
  };
  for (const std::string& name : {member("config_sentence_transformers.json", {"activation_fn"}),
                                  member("config.json", {"sentence_transformers", "activation_fn"}),
                                  member("config.json", {"sbert_ce_default_activation_function"})})
    if (!name.empty()) return name;
  return "";
}

ClassNames find_class_names(const std::map<std::string, std::string>& metadata,
                            const std::filesystem::path& model) {
  const auto found = metadata.find(kClassNamesKey);
  if (found != metadata.end()) {
    const std::string place = (model.empty() ? kModelInMemory : model.string()) + ": " +
                              kClassNamesKey + " in the metadata";
    auto names = parse_class_names(found->second, place);
    if (!names.empty()) return {std::move(names), model};
  }
  if (model.empty()) return {};
  const std::filesystem::path config = text::companion_file(model, "config.json");
  return {read_labels(config), config};
}

}  // namespace bertcl::tasks
