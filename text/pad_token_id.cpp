// SPDX-License-Identifier: Apache-2.0
// The token that pads the rows of a batch, by the files of a model.
#include "text/pad_token_id.hpp"

#include <nlohmann/json.hpp>

#include "text/model_tokenizer.hpp"
#include "text/token_names.hpp"

namespace bertcl::text {
namespace {

using Json = nlohmann::json;

/// A member that is an id; -1, as some files have it, is none.
std::optional<std::int64_t> id_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer() || *found < 0) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<std::int64_t> id_of_padding(const std::filesystem::path& model) {
  const Json tokenizer = object_beside(model, "tokenizer.json");
  const auto padding = tokenizer.find("padding");
  if (padding == tokenizer.end() || !padding->is_object()) return std::nullopt;
  return id_in(*padding, "pad_id");
}

}  // namespace

std::optional<std::int64_t> pad_id_in_config(const std::filesystem::path& model) {
  return id_in(object_beside(model, "config.json"), "pad_token_id");
}

std::optional<std::int64_t> read_pad_token_id(const std::filesystem::path& model) {
  if (const auto id = pad_id_in_config(model)) return id;
  if (const auto id = id_of_padding(model)) return id;
  const auto name = token_name(object_beside(model, "tokenizer_config.json"), "pad_token");
  if (!name) return std::nullopt;
  const std::filesystem::path vocabulary = vocabulary_beside(model);
  if (vocabulary.empty()) return std::nullopt;
  return load_with_config(vocabulary).find_id(*name);
}

std::optional<std::int64_t> pad_id_of(const Tokenizer& tokenizer,
                                      const std::filesystem::path& model) {
  for (const std::string& name : token_names_beside(model, "pad_token"))
    if (const auto id = tokenizer.find_id(name)) return id;
  if (const auto id = id_of_padding(model)) return id;
  if (const auto id = pad_id_in_config(model)) return id;
  const auto id = tokenizer.find_id("[PAD]");
  return id ? id : tokenizer.find_id("<pad>");
}

}  // namespace bertcl::text
