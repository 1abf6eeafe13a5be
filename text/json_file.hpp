// SPDX-License-Identifier: Apache-2.0
// JSON files with errors that name file and place.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bertcl::text {

/// Parses JSON. Throws Error with `origin`, line, column and byte of the first fault.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

/// The same of a file.
nlohmann::json read_json(const std::filesystem::path& path);

}  // namespace bertcl::text
