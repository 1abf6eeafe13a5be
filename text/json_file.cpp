// SPDX-License-Identifier: Apache-2.0
// JSON files, with errors that name file and place.
#include "text/json_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "text/file.hpp"

namespace bertcl::text {

namespace {

/// Without "[json.exception.parse_error.101] " in front of it.
std::string_view reason_of(const nlohmann::json::exception& error) {
  std::string_view reason = error.what();
  if (const std::size_t bracket = reason.find("] "); bracket != std::string_view::npos)
    reason.remove_prefix(bracket + 2);
  return reason;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view origin) {
  const std::string place = origin.empty() ? "" : fmt::format("{}: ", origin);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    if (error.byte > text.size()) {
      throw Error(
          fmt::format(
              "{}broken JSON: unexpected end of file after {} bytes; was it copied in full? {}",
              place, text.size(), reason_of(error)),
          ErrorCode::invalid_file);
    }
    throw Error(fmt::format("{}broken JSON (byte {} of {}): {}", place, error.byte, text.size(),
                            reason_of(error)),
                ErrorCode::invalid_file);
  } catch (const nlohmann::json::exception& error) {  // a number that no double holds
    throw Error(fmt::format("{}broken JSON: {}", place, reason_of(error)), ErrorCode::invalid_file);
  }
}

bool begins_as_object(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // which the parser skips, too
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

}  // namespace bertcl::text
