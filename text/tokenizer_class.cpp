// SPDX-License-Identifier: Apache-2.0
// The class of a tokenizer in transformers, which says how its files are read.
#include "text/tokenizer_class.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "text/base/companion_files.hpp"
#include "text/base/json_node.hpp"
#include "text/token_names.hpp"

namespace bertcl::text {
namespace {

std::string named_beside(const std::filesystem::path& path, const char* name, const char* key) {
  const nlohmann::json json = object_beside(path, name);
  const std::string origin = companion_file(path, name).string();
  const auto found = JsonNode(json, origin).find(key);
  return found ? found->string() : "";
}

/// Models whose vocabularies are not told apart from those of BERT and XLM-RoBERTa by their tokens.
bool has_own_tokenizer(std::string_view model_type) {
  constexpr std::array<std::string_view, 8> types = {"camembert", "m2m_100", "mbart",    "mpnet",
                                                     "nllb-moe",  "plbart",  "roformer", "xglm"};
  return std::ranges::find(types, model_type) != types.end();
}

}  // namespace

std::string tokenizer_class_beside(const std::filesystem::path& vocabulary) {
  for (const char* name : {"tokenizer_config.json", "config.json"})
    if (std::string found = named_beside(vocabulary, name, "tokenizer_class"); !found.empty())
      return found;
  std::string model_type = named_beside(vocabulary, "config.json", "model_type");
  return has_own_tokenizer(model_type) ? model_type : "";
}

bool is_generic(std::string_view tokenizer_class) {
  return tokenizer_class == "PreTrainedTokenizerFast" || tokenizer_class == "PreTrainedTokenizer" ||
         tokenizer_class == kTokenizersBackend;
}

bool may_be_one_of(std::string_view tokenizer_class,
                   std::initializer_list<std::string_view> known) {
  if (tokenizer_class.empty() || is_generic(tokenizer_class)) return true;
  for (const std::string_view end : {"Fast", "Tokenizer"})
    if (tokenizer_class.ends_with(end)) tokenizer_class.remove_suffix(end.size());
  return std::ranges::find(known, tokenizer_class) != known.end();
}

}  // namespace bertcl::text
