// SPDX-License-Identifier: Apache-2.0
// Reading of JSON files with errors that name file and place.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bertcl::squad {

/// Content of a file. Throws Error that names it.
std::string read_file(const std::filesystem::path& path);

/// Parses JSON. Throws Error with `origin`, line, column and byte of the first fault.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

}  // namespace bertcl::squad
