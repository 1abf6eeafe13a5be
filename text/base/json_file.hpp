// SPDX-License-Identifier: Apache-2.0
// JSON files, with errors that name file and place.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace bertcl::text {

/// Parses JSON. Throws Error with `origin`, line, column and byte of the first fault. An empty
/// origin is omitted: the caller names the file.
nlohmann::json parse_json(std::string_view text, std::string_view origin = {});

/// The same of a file.
nlohmann::json read_json(const std::filesystem::path& path);

/// True if the first character that is not blank is a brace: JSON, whole or damaged.
bool begins_as_object(std::string_view text);

}  // namespace bertcl::text
