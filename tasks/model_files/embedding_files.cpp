// SPDX-License-Identifier: Apache-2.0
// The files of sentence-transformers beside a model, which say how texts become vectors.
#include "tasks/model_files/embedding_files.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy =
    "export the model with all of its modules in the graph, as an output sentence_embedding";

/// Calls visit(node) for a file that is there.
template <class Visit>
void if_there(const fs::path& path, const Visit& visit) {
  if (!text::is_present(path)) return;
  const nlohmann::json json = text::read_json(path);
  const std::string origin = path.string();
  visit(text::JsonNode(json, origin));
}

/// Both spellings: the name of a mode, else a flag for each; the mean where there is neither
/// (`_convert_legacy_pooling_kwargs` of sentence-transformers 6.2.0).
void read_pooling(const text::JsonNode& config, EmbeddingFiles& files) {
  constexpr std::array<std::pair<const char*, const char*>, 6> modes = {{
      {"mean_tokens", "mean"},
      {"max_tokens", "max"},
      {"cls_token", "cls"},
      {"lasttoken", "last"},
      {"mean_sqrt_len_tokens", ""},
      {"weightedmean_tokens", ""},
  }};
  const auto refuse = [&](const std::string& what) {
    config.fail("asks for pooling by {}, which is not supported (mean, max, cls, last); {}", what,
                kRemedy);
  };
  if (const auto mode = config.find("pooling_mode")) {
    const bool listed = mode->value().is_array();
    if (listed && mode->value().size() != 1)
      refuse(mode->value().empty() ? "no mode" : "several modes at once");
    const std::string name = listed ? mode->element(0).string() : mode->string();
    const std::string known = name == "lasttoken" ? "last" : name;
    if (known != "mean" && known != "max" && known != "cls" && known != "last") refuse(name);
    files.pooling = known;
  } else {
    for (const auto& [flag_name, name] : modes) {
      const auto flag = config.find(std::string("pooling_mode_") + flag_name);
      if (!flag || !flag->boolean()) continue;
      if (!*name) refuse(flag_name);
      if (!files.pooling.empty()) refuse("several modes at once");
      files.pooling = name;
    }
    if (files.pooling.empty()) files.pooling = "mean";
  }
  if (const auto prompt = config.find("include_prompt")) files.pools_prompt = prompt->boolean();
}

void read_modules(const text::JsonNode& modules, EmbeddingFiles& files) {
  modules.each([&](const text::JsonNode& module) {
    const std::string type = module.at("type").string();
    const std::string name = type.substr(type.rfind('.') + 1);
    if (files.scores_pairs && name != "Transformer") return;
    const text::JsonNode path = module.at("path");
    const fs::path folder = files.folder / path.string();
    if (name != "Transformer" && !text::is_inside(path.string()))
      path.fail("is outside the model's folder");
    if (name == "Transformer") {
      const auto found = std::ranges::find_if(text::kTransformerFiles, [&](const char* file) {
        return text::is_present(folder / file);
      });
      if (found == text::kTransformerFiles.end()) return;
      if_there(folder / *found, [&](const text::JsonNode& config) {
        if (const auto length = config.find("max_seq_length"))
          if (const auto max_length = read_length(*length)) files.max_length = max_length;
        if (const auto lower = config.find("do_lower_case")) files.lower_case = lower->boolean();
      });
    } else if (name == "Pooling") {
      if (!text::is_present(folder / "config.json"))
        throw Error((folder / "config.json").string() + " is missing, but modules.json names it");
      if_there(folder / "config.json",
               [&](const text::JsonNode& config) { read_pooling(config, files); });
    } else if (name == "Dense") {
      if (files.pooling.empty() || files.normalize)
        module.fail("is a module Dense, which is supported between Pooling and Normalize alone; {}",
                    kRemedy);
      files.dense.push_back(folder);
    } else if (name == "Normalize") {
      files.normalize = true;
    } else {
      module.fail("is a module {}, which is not supported; {}", name, kRemedy);
    }
  });
}

void read_settings(const text::JsonNode& config, EmbeddingFiles& files) {
  const auto type = config.find("model_type");
  files.scores_pairs = type && type->string() == "CrossEncoder";
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
    config.fail("names '{}' as the default prompt, but has no such prompt", name->string());
  files.default_prompt_name = found->first;
  files.default_prompt = found->second;
}

}  // namespace

RetrievalPrompts EmbeddingFiles::prompts_by_role() const {
  const auto first_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const auto found = prompts.find(name); found != prompts.end()) return found->second;
    return default_prompt;
  };
  return {first_of({"query"}), first_of({"document", "passage", "corpus"})};
}

RetrievalPrompts EmbeddingFiles::retrieval_prompts() const {
  RetrievalPrompts found = prompts_by_role();
  if (!pools_prompt && !(found.question.empty() && found.paragraph.empty()))
    throw Error(folder.string() + ": 1_Pooling/config.json " + kExcludesPrompt);
  return found;
}

const std::string& prompt_named(const std::map<std::string, std::string>& prompts,
                                const std::string& name) {
  const auto found = prompts.find(name);
  if (found != prompts.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, text] : prompts) names.push_back(known);
  fail("unknown prompt '{}'{}", name, suggestion(name, names));
}

EmbeddingFiles read_embedding_files(const fs::path& model) {
  EmbeddingFiles files;
  files.max_length = declared_length(model);
  const fs::path modules = text::companion_file(model, "modules.json");
  EmbeddingFiles settings = files;
  if_there(text::companion_file(model, "config_sentence_transformers.json"),
           [&](const text::JsonNode& config) { read_settings(config, settings); });
  if (text::is_present(modules) || settings.scores_pairs) files = std::move(settings);
  if (!text::is_present(modules)) return files;
  files.folder = modules.parent_path();
  if_there(modules, [&](const text::JsonNode& list) { read_modules(list, files); });
  return files;
}

}  // namespace bertcl::tasks
