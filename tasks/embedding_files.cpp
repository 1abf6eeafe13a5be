// SPDX-License-Identifier: Apache-2.0
// The files of sentence-transformers beside a model, which say how texts become vectors.
#include "tasks/embedding_files.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "text/json_file.hpp"
#include "text/json_node.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy =
    "export the model with all of its modules in the graph, as an output sentence_embedding";
constexpr std::int64_t kNoLimit = 1'000'000;  // tokens; tokenizers without one say 1e30

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Calls visit(node) for a file that is there.
template <class Visit>
void if_there(const fs::path& path, const Visit& visit) {
  if (!is_there(path)) return;
  const nlohmann::json json = text::read_json(path);
  const std::string origin = path.string();
  visit(text::JsonNode(json, origin));
}

fs::path folder_with_files(const fs::path& model) {
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  const fs::path above = fs::absolute(folder).lexically_normal();
  if (is_there(folder / "modules.json")) return folder;
  if (above.filename() == "onnx" && is_there(above.parent_path() / "modules.json"))
    return above.parent_path();
  return {};
}

/// Both spellings: a flag for each mode, and the name of one.
void read_pooling(const text::JsonNode& config, EmbeddingFiles& files) {
  constexpr std::array<std::pair<const char*, const char*>, 6> modes = {{
      {"mean_tokens", "mean"},
      {"max_tokens", "max"},
      {"cls_token", "cls"},
      {"lasttoken", "last"},
      {"mean_sqrt_len_tokens", ""},
      {"weightedmean_tokens", ""},
  }};
  std::vector<std::string> found;
  const auto refuse = [&](const std::string& what) {
    config.fail(
        fmt::format("asks for pooling by {}, which is not supported (mean, max, cls, last); {}",
                    what, kRemedy));
  };
  for (const auto& [mode, name] : modes) {
    const auto flag = config.find(std::string("pooling_mode_") + mode);
    if (!flag || !flag->boolean()) continue;
    if (!*name) refuse(mode);
    found.emplace_back(name);
  }
  if (const auto mode = config.find("pooling_mode"); mode && found.empty()) {
    if (mode->value().is_array()) refuse("several modes at once");
    const std::string name = mode->string();
    const std::string known = name == "lasttoken" ? "last" : name;
    if (known != "mean" && known != "max" && known != "cls" && known != "last") refuse(name);
    found.push_back(known);
  }
  if (found.size() != 1) refuse(found.empty() ? "no mode" : "several modes at once");
  files.pooling = found.front();
  if (const auto prompt = config.find("include_prompt")) files.pools_prompt = prompt->boolean();
}

void read_modules(const text::JsonNode& modules, EmbeddingFiles& files) {
  modules.each([&](const text::JsonNode& module) {
    const std::string type = module.at("type").string();
    const std::string name = type.substr(type.rfind('.') + 1);
    const fs::path folder = files.folder / module.at("path").string();
    if (name == "Transformer") {
      if_there(folder / "sentence_bert_config.json", [&](const text::JsonNode& config) {
        if (const auto length = config.find("max_seq_length"))
          files.max_length = static_cast<int>(length->integer());
        if (const auto lower = config.find("do_lower_case")) files.lower_case = lower->boolean();
      });
    } else if (name == "Pooling") {
      if (!is_there(folder / "config.json"))
        throw Error((folder / "config.json").string() + " is missing, but modules.json names it");
      if_there(folder / "config.json",
               [&](const text::JsonNode& config) { read_pooling(config, files); });
    } else if (name == "Normalize") {
      files.normalize = true;
    } else {
      module.fail(fmt::format("is a module {}, which is not supported; {}", name, kRemedy));
    }
  });
}

void read_prompts(const text::JsonNode& config, EmbeddingFiles& files) {
  if (const auto prompts = config.find("prompts"))
    prompts->each_member([&](const std::string& name, const text::JsonNode& prompt) {
      files.prompts[name] = prompt.string();
    });
  if (const auto function = config.find("similarity_fn_name"))
    files.similarity = function->string();
  if (const auto cut = config.find("truncate_dim")) files.dimensions = cut->integer();
  const auto name = config.find("default_prompt_name");
  if (!name) return;
  const auto found = files.prompts.find(name->string());
  if (found == files.prompts.end())
    config.fail(
        fmt::format("names '{}' as the default prompt, but has no such prompt", name->string()));
  files.default_prompt = found->second;
}

}  // namespace

EmbeddingFiles read_embedding_files(const fs::path& model) {
  EmbeddingFiles files;
  files.folder = folder_with_files(model);
  if (files.folder.empty()) return files;
  if_there(files.folder / "modules.json",
           [&](const text::JsonNode& modules) { read_modules(modules, files); });
  if_there(files.folder / "config_sentence_transformers.json",
           [&](const text::JsonNode& config) { read_prompts(config, files); });
  if (!files.max_length)
    if_there(files.folder / "tokenizer_config.json", [&](const text::JsonNode& config) {
      const auto limit = config.find("model_max_length");
      if (limit && limit->number() < kNoLimit) files.max_length = static_cast<int>(limit->number());
    });
  return files;
}

}  // namespace bertcl::tasks
