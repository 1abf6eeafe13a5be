// SPDX-License-Identifier: Apache-2.0
// Parsing of JSON with errors that name file and place.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bertcl::squad {

/// Parses JSON. Throws Error with `origin`, line, column and byte of the first fault.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

}  // namespace bertcl::squad
