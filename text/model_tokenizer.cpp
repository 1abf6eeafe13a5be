// SPDX-License-Identifier: Apache-2.0
// Where a model's tokenizer lies, and what the files beside it say.
#include "text/model_tokenizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "support/fail.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"
#include "text/token_names.hpp"
#include "text/tokenizer_class.hpp"

namespace bertcl::text {

std::filesystem::path vocabulary_beside(const std::filesystem::path& model) {
  for (const char* name : kVocabularyFiles)
    if (auto found = companion_file(model, name); is_present(found)) return found;
  return {};
}

std::filesystem::path find_vocabulary(const std::vector<std::filesystem::path>& models,
                                      const std::string& advice) {
  std::vector<std::string> tried;
  for (const std::filesystem::path& model : models) {
    if (auto found = vocabulary_beside(model); !found.empty()) return found;
    tried.push_back(companion_file(model, "vocab.txt").string());
  }
  fail("no vocabulary at {}, and no tokenizer.json; {}", fmt::join(tried, " or "), advice);
}

TokenizerOptions with_config(const std::filesystem::path& vocabulary, TokenizerOptions options) {
  const std::filesystem::path config = companion_file(vocabulary, "tokenizer_config.json");
  if (!is_present(config)) return options;
  const std::string origin = config.string();
  const nlohmann::json json = read_json(config);
  const JsonNode settings(json, origin);
  const auto read = [&](std::optional<bool>& option, const char* key) {
    const auto found = settings.find(key);
    if (found && !option) option = found->boolean();
  };
  const auto named = settings.find("tokenizer_class");
  // Other classes change the case and the tokens around texts that a tokenizer.json says.
  options.adds_to_file =
      vocabulary.extension() != ".json" || !named || !is_generic(named->string());
  if (options.adds_to_file) {
    read(options.lower_case, "do_lower_case");
    read(options.strip_accents, "strip_accents");
    read(options.split_cjk, "tokenize_chinese_chars");
  }
  if (const auto side = settings.find("truncation_side"); side && !options.cut_left) {
    options.cut_left = side->string() == "left";
    if (!*options.cut_left && side->string() != "right")
      side->fail(fmt::format("is \"{}\" (choose from right, left)", side->string()));
  }
  options.token_types = options.token_types && has_token_types(settings);
  options.cleans_up = settings.flag("clean_up_tokenization_spaces", options.cleans_up);
  return options;
}

bool has_token_types(const JsonNode& tokenizer_config) {
  if (const auto names = tokenizer_config.find("model_input_names")) {
    bool lists = false;
    names->each([&](const JsonNode& name) { lists |= name.string() == "token_type_ids"; });
    return lists;
  }
  const auto family = tokenizer_config.find("tokenizer_class");
  return !family || family->string() != kTokenizersBackend;
}

Tokenizer load_with_config(const std::filesystem::path& vocabulary, TokenizerOptions options) {
  options = with_config(vocabulary, std::move(options));
  options.mask_tokens = token_names_beside(vocabulary, "mask_token");
  return Tokenizer::from_file(vocabulary, std::move(options));
}

}  // namespace bertcl::text
