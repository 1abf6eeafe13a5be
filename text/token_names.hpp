// SPDX-License-Identifier: Apache-2.0
// Tokens by the names that the files beside a model give them.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace bertcl::text {

/// The object in the file `name` beside (companion_file()) a model; empty if there is none. Throws
/// Error that names the file if it is damaged.
nlohmann::json object_beside(const std::filesystem::path& model, const char* name);

/// The token of a member such as "mask_token": a string, or an object with "content".
std::optional<std::string> token_name(const nlohmann::json& settings, const char* key);

/// What tokenizer_config.json, special_tokens_map.json and config.json beside `file` call `key`, in
/// this order. Throws Error that names a file that is damaged.
std::vector<std::string> token_names_beside(const std::filesystem::path& file, const char* key);

}  // namespace bertcl::text
