// SPDX-License-Identifier: Apache-2.0
// The files beside a model that say how it is used: its vocabulary, its tokenizer, its classes.
#include "quant/writing/companions.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"
#include "text/model_tokenizer.hpp"
#include "text/tokenizer_files.hpp"

namespace bertcl::quant {
namespace {

namespace fs = std::filesystem;

/// Of tokenizers, beside text::kVocabularyFiles.
constexpr std::array<const char*, 4> kTokenizerFiles = {
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt"};
constexpr const char* kConfig = "config.json";
/// Of sentence-transformers (tasks/model_files/embedding_files.hpp).
constexpr std::array<const char*, 3> kEmbeddingFiles = {"modules.json", "1_Pooling/config.json",
                                                        "config_sentence_transformers.json"};

/// Of any model, without those that modules.json names.
std::vector<std::string> usual_names() {
  std::vector<std::string> names(text::kVocabularyFiles.begin(), text::kVocabularyFiles.end());
  names.insert(names.end(), kTokenizerFiles.begin(), kTokenizerFiles.end());
  names.emplace_back(kConfig);
  names.insert(names.end(), kEmbeddingFiles.begin(), kEmbeddingFiles.end());
  names.insert(names.end(), text::kTransformerFiles.begin(), text::kTransformerFiles.end());
  return names;
}

/// In the folder of a module of sentence-transformers.
std::span<const char* const> files_of_module(std::string_view name) {
  static constexpr std::array<const char*, 2> files = {"config.json", "model.safetensors"};
  if (name == "Transformer") return text::kTransformerFiles;
  if (name == "Pooling") return std::span(files).first(1);
  if (name == "Dense") return files;
  return {};
}

/// Adds the files of the modules that modules.json names; those inside the folder, too, if it
/// throws for one outside.
void add_module_files(const fs::path& modules, std::vector<std::string>& names) {
  std::error_code ignored;
  if (!fs::is_regular_file(modules, ignored)) return;
  const nlohmann::json json = text::read_json(modules);
  const std::string origin = modules.string();
  std::optional<text::JsonNode> outside;
  text::JsonNode(json, origin).each([&](const text::JsonNode& module) {
    const std::string type = module.at("type").string();
    const std::string_view name = std::string_view(type).substr(type.rfind('.') + 1);
    const auto files = files_of_module(name);
    if (files.empty()) return;
    const text::JsonNode path = module.at("path");
    if (!text::is_inside(path.string())) {
      if (name != "Transformer") outside = path;  // which lies in the folder itself
      return;
    }
    for (const char* file : files)
      names.push_back((fs::path(path.string()).lexically_normal() / file).generic_string());
  });
  if (outside)
    outside->fail(fmt::format("is outside the model's folder; write only the model with {}",
                              option_name("model-only")));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// From the name that a companion has beside a model to where it lies now.
std::map<std::string, fs::path> companions_of(const fs::path& model, const fs::path& vocabulary) {
  std::map<std::string, fs::path> found;
  std::error_code ignored;
  const auto take = [&](const char* name, const fs::path& from) {
    if (fs::is_regular_file(from, ignored)) found[name] = from;
  };
  take(kConfig, text::companion_file(model, kConfig));
  for (const char* name : kEmbeddingFiles) take(name, text::companion_file(model, name));
  for (const char* name : text::kTransformerFiles) take(name, text::companion_file(model, name));
  std::vector<std::string> of_modules;
  add_module_files(text::companion_file(model, "modules.json"), of_modules);
  for (const std::string& name : of_modules) take(name.c_str(), text::companion_file(model, name));
  for (const char* name : kTokenizerFiles)
    take(name,
         vocabulary.empty() ? text::companion_file(model, name) : folder_of(vocabulary) / name);
  if (vocabulary.empty()) {
    for (const char* name : text::kVocabularyFiles) take(name, text::companion_file(model, name));
    return found;
  }
  const std::string content = text::read_bytes(vocabulary);
  const bool merges = vocabulary.filename() == "vocab.json" && found.contains("merges.txt");
  if (!merges) found.erase("merges.txt");
  found[merges                             ? "vocab.json"
        : text::begins_as_object(content)  ? "tokenizer.json"
        : text::is_sentence_piece(content) ? "sentencepiece.bpe.model"
                                           : "vocab.txt"] = vocabulary;
  return found;
}

}  // namespace

std::vector<fs::path> companion_files(const fs::path& file) {
  std::vector<std::string> names = usual_names();
  try {
    add_module_files(text::companion_file(file, "modules.json"), names);
  } catch (const Error&) {  // what is wrong with modules.json is said by who needs it
  }
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const std::string& name : names)
    if (const fs::path path = text::companion_file(file, name); fs::is_regular_file(path, ignored))
      files.push_back(path);
  return files;
}

Companions::Companions(const fs::path& model, const fs::path& vocabulary, const fs::path& output,
                       bool replace) {
  const fs::path folder = folder_of(output);
  const auto companions = companions_of(model, vocabulary);
  std::error_code ignored;
  if (companions.empty() ||
      (vocabulary.empty() && fs::equivalent(folder_of(model), folder, ignored)))
    return;
  const auto refuse = [&](const std::string& what, std::string_view also) {
    fail(
        "{}, so it belongs to another model; give the output a folder of its own{}, or "
        "write only the model with {}",
        what, also, option_name("model-only"));
  };
  // A file that the model does without would change how its texts are read.
  for (const std::string& name : usual_names())
    if (!companions.contains(name) && fs::exists(folder / name, ignored))
      refuse(
          fmt::format("{} has no counterpart beside {}", (folder / name).string(), model.string()),
          "");
  for (const auto& [name, from] : companions) {
    const fs::path to = folder / name;
    if (fs::exists(to, ignored)) {
      if (fs::equivalent(from, to, ignored) || text::read_bytes(from) == text::read_bytes(to))
        continue;
      if (!replace)
        refuse(fmt::format("{} differs from {}", to.string(), from.string()),
               ", replace that file with " + option_name("force"));
    }
    missing_.push_back({name, from, to});
  }
}

std::vector<std::string> Companions::copy(WrittenFiles& written) const {
  std::vector<std::string> names;
  for (const Companion& file : missing_) {
    if (std::error_code failed; !fs::create_directories(file.to.parent_path(), failed) && failed)
      throw Error(fmt::format("{}: cannot create the folder: {}", file.to.parent_path().string(),
                              failed.message()),
                  ErrorCode::io);
    written.write(file.to, text::read_bytes(file.from));
    names.push_back(file.name);
  }
  return names;
}

}  // namespace bertcl::quant
