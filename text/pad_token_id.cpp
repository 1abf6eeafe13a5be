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

}  // namespace

std::optional<std::int64_t> read_pad_token_id(const std::filesystem::path& model) {
  if (const auto id = id_in(object_beside(model, "config.json"), "pad_token_id")) return id;
  const Json tokenizer = object_beside(model, "tokenizer.json");
  const auto padding = tokenizer.find("padding");
  if (padding != tokenizer.end() && padding->is_object())
    if (const auto id = id_in(*padding, "pad_id")) return id;
  const auto name = token_name(object_beside(model, "tokenizer_config.json"), "pad_token");
  if (!name) return std::nullopt;
  const std::filesystem::path vocabulary = vocabulary_beside(model);
  if (vocabulary.empty()) return std::nullopt;
  return load_with_config(vocabulary).find_id(*name);
}

}  // namespace bertcl::text
