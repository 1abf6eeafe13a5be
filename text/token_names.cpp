// SPDX-License-Identifier: Apache-2.0
// Tokens by the names that the files beside a model give them.
#include "text/token_names.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "text/base/companion_files.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"

namespace bertcl::text {

nlohmann::json object_beside(const std::filesystem::path& model, const char* name) {
  const std::filesystem::path file = companion_file(model, name);
  if (!is_present(file)) return nlohmann::json::object();
  nlohmann::json json = read_json(file);
  return json.is_object() ? std::move(json) : nlohmann::json::object();
}

std::optional<std::string> token_name(const nlohmann::json& settings, const char* key) {
  const nlohmann::json token = settings.value(key, nlohmann::json());
  const nlohmann::json name = token.is_object() ? token.value("content", nlohmann::json()) : token;
  return name.is_string() ? std::optional(name.get<std::string>()) : std::nullopt;
}

std::vector<std::string> token_names_beside(const std::filesystem::path& file, const char* key) {
  std::vector<std::string> names;
  for (const char* each : {"tokenizer_config.json", "special_tokens_map.json", "config.json"})
    if (auto name = token_name(object_beside(file, each), key)) names.push_back(std::move(*name));
  return names;
}

}  // namespace bertcl::text
