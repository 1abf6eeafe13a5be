// SPDX-License-Identifier: Apache-2.0
// JSON files with errors that name file and place.
#include "text/json_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "text/file.hpp"

namespace bertcl::text {

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view reason = error.what();
    if (const std::size_t bracket = reason.find("] "); bracket != std::string_view::npos) {
      reason.remove_prefix(bracket + 2);
    }
    if (error.byte > text.size()) {
      throw Error(fmt::format(
          "{}: broken JSON: the file ends too early, after {} bytes; was it copied in full? {}",
          origin, text.size(), reason));
    }
    throw Error(fmt::format("{}: broken JSON (byte {} of {}): {}", origin, error.byte, text.size(),
                            reason));
  }
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

}  // namespace bertcl::text
