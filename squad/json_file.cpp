// SPDX-License-Identifier: Apache-2.0
// Reading of JSON files with errors that name file and place.
#include "squad/json_file.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bertcl/error.hpp"

namespace bertcl::squad {

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(fmt::format("{}: is a directory; the name of a file is needed", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw Error(fmt::format("{}: cannot read", path.string()));
  return content;
}

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view reason = error.what();
    if (const std::size_t bracket = reason.find("] "); bracket != std::string_view::npos) {
      reason.remove_prefix(bracket + 2);
    }
    throw Error(fmt::format("{}: broken JSON (byte {} of {}): {}", origin, error.byte, text.size(),
                            reason));
  }
}

}  // namespace bertcl::squad
