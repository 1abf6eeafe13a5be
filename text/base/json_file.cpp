// SPDX-License-Identifier: Apache-2.0
// JSON files, with errors that name file and place.
#include "text/base/json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "bertcl/error.hpp"
#include "support/json_reason.hpp"
#include "text/base/file.hpp"

namespace bertcl::text {

namespace {

/// What follows `mark`; nothing where it is absent.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return std::nullopt;
  return text.substr(at + mark.size());
}

/// The word that has the byte, or ends before it; else the byte.
std::string word_at(std::string_view text, std::size_t byte) {
  const auto is_part = [&](std::size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return std::isalnum(c) || c == '_' || c == '\'' || c == '.' || c == '+' || c == '-';
  };
  std::size_t end = byte;
  if (!is_part(byte) && byte > 0 && is_part(byte - 1)) --byte;
  if (!is_part(byte)) {
    const auto c = static_cast<unsigned char>(text[byte]);
    return std::isprint(c) ? fmt::format("'{}'", text[byte]) : fmt::format("byte {:#04x}", c);
  }
  while (byte > 0 && is_part(byte - 1)) --byte;
  while (end < text.size() && is_part(end)) ++end;
  return fmt::format("'{}'", text.substr(byte, std::min<std::size_t>(end - byte, 40)));
}

/// The token that the parser wants, as a reader calls it. It ends the reason: what was read is
/// quoted before it, and may hold the same words.
std::string_view expected_of(std::string_view reason) {
  constexpr std::pair<std::string_view, std::string_view> tokens[] = {
      {"; expected string literal", "a key in double quotes"},
      {"; expected end of input", "the end"},
      {"; expected ']'", "',' or ']'"},
      {"; expected '}'", "',' or '}'"},
      {"; expected ':'", "':'"}};
  for (const auto& [end, words] : tokens)
    if (reason.ends_with(end)) return words;
  return "a value";
}

/// "parse error at ..: syntax error while parsing value - unexpected '}'; expected .." in words.
std::string fault_of(std::string_view reason, std::string_view text, std::size_t byte) {
  const std::string_view fault = after(reason, " - ").value_or(reason);
  if (fault.starts_with("invalid literal"))
    return fmt::format("unexpected {}, expected {}", word_at(text, byte), expected_of(fault));
  if (fault.starts_with("unexpected ")) {
    const std::string_view found = fault.substr(std::string_view("unexpected ").size());
    std::string_view token = found.substr(0, found.find(';'));
    if (token.ends_with(" literal")) token.remove_suffix(std::string_view(" literal").size());
    return fmt::format("unexpected {}, expected {}", token, expected_of(fault));
  }
  std::string words(fault.substr(0, fault.find("; last read")));
  if (const std::size_t at = words.find("; "); at != words.npos) words.replace(at, 1, ":");
  return words;
}

/// "line 2, column 4, byte 15 of 16", where the text has several lines.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string bytes = fmt::format("byte {} of {}", byte, text.size());
  const std::string_view before = text.substr(0, byte - 1);
  const auto lines = std::ranges::count(text, '\n');
  if (lines == 0) return bytes;
  const std::size_t begin = before.rfind('\n') + 1;  // 0 in the first line
  return fmt::format("line {}, column {}, {}", 1 + std::ranges::count(before, '\n'), byte - begin,
                     bytes);
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view origin) {
  const std::string place = origin.empty() ? "" : fmt::format("{}: ", origin);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    if (text.empty()) throw Error(place + "invalid JSON: it is empty", ErrorCode::invalid_file);
    if (error.byte > text.size()) {
      const auto lines = std::ranges::count(text, '\n');
      throw Error(
          fmt::format("{}invalid JSON: unexpected end after {} bytes{}; was it copied in full?",
                      place, text.size(), lines == 0 ? "" : fmt::format(", in line {}", lines + 1)),
          ErrorCode::invalid_file);
    }
    throw Error(fmt::format("{}invalid JSON ({}): {}", place, place_of(text, error.byte),
                            fault_of(error.what(), text, error.byte - 1)),
                ErrorCode::invalid_file);
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();
    const auto number = after(what, "number overflow parsing ");
    throw Error(fmt::format("{}invalid JSON: {}", place,
                            number ? fmt::format("the number {} is too large",
                                                 number->substr(1, number->size() - 2))
                                   : std::string(json_reason(what))),
                ErrorCode::invalid_file);
  }
}

bool begins_as_object(std::string_view text) {
  text = without_byte_order_mark(text);  // which the parser skips, too
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

nlohmann::json read_json(const std::filesystem::path& path) {
  check_regular_file(path);
  return parse_json(read_file(path), path.string());
}

}  // namespace bertcl::text
