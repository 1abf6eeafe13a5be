// SPDX-License-Identifier: Apache-2.0
// Data files of texts, also from standard input: lines, and JSON lines.
#include "text/data_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"
#include "text/unicode.hpp"

namespace bertcl::text {

namespace {
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_named_json(const DataFile& file) {
  return lower_ascii(std::filesystem::path(file.name).extension().string()) == ".json";
}

/// Throws Error where a JSON array would be read as lines of text: in a .json file, and elsewhere
/// where objects are in brackets, or where strings are on lines of their own.
void refuse_array(const DataFile& file) {
  const std::string_view content = trimmed(file.content);
  if (!content.starts_with('[')) return;
  const std::string_view inside = trimmed(content.substr(1));
  const std::string_view between(content.begin() + 1, inside.begin());
  const bool by_name = is_named_json(file);
  if (inside.starts_with('"') && (by_name || between.find('\n') != between.npos))
    fail("{}: is a JSON array; write one text a line (jq -r '.[]' FILE)", file.name);
  if (by_name || begins_as_array(content))
    fail("{}: is a JSON array; write one object a line (jq -c '.[]' FILE)", file.name);
}

/// Throws Error where lines end as on old Macs: all of the file would be one line.
void refuse_carriage_returns(const DataFile& file) {
  const std::size_t first = file.content.find('\r');
  if (first != file.content.npos && first + 1 < file.content.size() &&
      file.content.find('\n') == file.content.npos)
    fail("{}: lines end in CR alone; convert them to LF (tr '\\r' '\\n' < FILE)", file.name);
}

/// Throws Error where the file begins with a byte order mark of UTF-16, or where every other byte
/// is 0, which is UTF-8 as well.
void refuse_utf16(const DataFile& file) {
  const std::string_view begin = std::string_view(file.content).substr(0, 4);
  const auto zeros = [&](std::size_t first) {
    return begin.size() == 4 && begin[first] == '\0' && begin[first + 2] == '\0' &&
           begin[1 - first] != '\0' && begin[3 - first] != '\0';
  };
  const bool big_endian = begin.starts_with("\xfe\xff") || zeros(0);
  if (big_endian || begin.starts_with("\xff\xfe") || zeros(1))
    fail("{}: looks like UTF-16; convert it to UTF-8 (iconv -f UTF-16{} -t UTF-8 FILE)", file.name,
         big_endian ? "BE" : "LE");
}

/// True if the text has `"data": [`, whatever the blanks. In a string its quotes are escaped.
bool has_data_array(std::string_view text) {
  constexpr std::string_view key = "\"data\"";
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    std::string_view rest = trimmed(text.substr(at + key.size()));
    if (!rest.starts_with(':')) continue;
    rest = trimmed(rest.substr(1));
    if (rest.starts_with('[')) return true;
  }
  return false;
}

/// True for an object whose one member is "data".
bool has_data_alone(std::string_view text) {
  if (!trimmed(text.substr(1)).starts_with("\"data\"")) return false;
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return object.is_object() && object.size() == 1;
}

/// True for "{" and the quote of a member, where the object is not that of the first of JSON lines.
bool is_document(std::string_view content) {
  const std::string_view object = trimmed(content);
  return object.starts_with('{') && trimmed(object.substr(1)).starts_with('"') &&
         !is_json_lines(content);
}
}  // namespace

DataFile read_utf8(const std::filesystem::path& path) {
  DataFile file{path.string(), {}};
  if (path == "-") {
    file.name = "standard input";
    file.content.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (std::cin.bad()) throw Error(file.name + ": cannot read");
    if (file.content.starts_with(kByteOrderMark)) file.content.erase(0, kByteOrderMark.size());
  } else {
    file.content = read_file(path);
  }
  refuse_utf16(file);
  if (const auto bad = first_ill_formed(file.content)) {
    const auto end = file.content.begin() + static_cast<long>(*bad);
    fail_at(file, static_cast<std::size_t>(1 + std::count(file.content.begin(), end, '\n')),
            fmt::format("invalid UTF-8 at byte {} of {}", *bad, file.content.size()));
  }
  return file;
}

DataFile read_data_or_document(const std::filesystem::path& path) {
  DataFile file = read_utf8(path);
  refuse_array(file);
  if (!begins_as_object(file.content)) refuse_carriage_returns(file);
  return file;
}

DataFile read_data(const std::filesystem::path& path) {
  DataFile file = read_data_or_document(path);
  refuse_document(file);
  return file;
}

void refuse_document(const DataFile& file) {
  const bool by_name = is_named_json(file) && begins_as_object(file.content);
  if (!is_document(file.content) && !(by_name && !is_json_lines(file.content))) return;
  fail("{}: is a single JSON document; write one object a line (jq -c {} FILE)", file.name,
       is_squad(file.content) ? "'.data[].paragraphs[] | {text: .context}'" : ".");
}

bool is_blank(std::string_view text) { return text.find_first_not_of(kBlanks) == text.npos; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

FirstLine first_line(std::string_view content) {
  const std::size_t begin = content.find_first_not_of(kBlanks);
  if (begin == content.npos) return {};
  const std::size_t line_end = content.rfind('\n', begin);
  const std::size_t first = line_end == content.npos ? 0 : line_end + 1;
  std::string_view line = content.substr(first, content.find('\n', begin) - first);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto before = std::ranges::count(content.substr(0, first), '\n');
  return {line, 1 + static_cast<std::size_t>(before)};
}

void each_line(std::string_view content,
               const std::function<void(std::string_view line, std::size_t number)>& visit) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, ++number);
    begin = end + 1;
  }
}

void each_text(const DataFile& file, std::string_view unit,
               const std::function<void(std::string_view line, std::size_t number)>& visit) {
  if (file.content.empty()) fail("{}: contains no {}; each line is one", file.name, unit);
  each_line(file.content, visit);
}

bool read_line(std::istream& stream, std::string& line, std::size_t number) {
  if (!std::getline(stream, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

bool begins_as_array(std::string_view content) {
  content = trimmed(content);
  if (!content.starts_with('[')) return false;
  content = trimmed(content.substr(1));
  if (!content.starts_with('{')) return false;
  content = trimmed(content.substr(1));
  return content.starts_with('"') || content.starts_with('}');
}

bool is_squad(std::string_view content) { return is_document(content) && has_data_array(content); }

bool is_json_lines(std::string_view content) {
  if (!begins_as_object(content)) return false;
  content.remove_prefix(content.find('{'));
  content = trimmed(content);
  const std::string_view first = trimmed(content.substr(0, content.find('\n')));
  // A document over several lines; a broken line is one of JSON, too, and an error where it is
  // read.
  const bool goes_on = first.find_last_of(",[{:") == first.size() - 1 && !first.ends_with("},");
  if (goes_on) return false;
  const std::string_view key = trimmed(first.substr(1));
  // Nothing else tells what {}, or one that has only data, is meant to be.
  const bool alone = first.size() == content.size();
  if (key == "}") return !alone;
  // The first key tells: a SQuAD file may be long.
  const bool may_be_squad = key.starts_with("\"data\"") || key.starts_with("\"version\"");
  if (may_be_squad && has_data_array(first)) return false;
  return key.starts_with('"') && !(alone && has_data_alone(first));
}

void each_object(const DataFile& file, std::string_view hint,
                 const std::function<void(const JsonNode& object, std::size_t number)>& visit) {
  each_line(file.content, [&](std::string_view line, std::size_t number) {
    if (is_blank(line)) return;
    const std::string place = fmt::format("{}:{}", file.name, number);
    const nlohmann::json document = parse_json(line, place);
    const JsonNode object(document, place, hint);
    if (!document.is_object())
      fail_at(file, number, fmt::format("expected a JSON object; {}", hint));
    visit(object, number);
  });
}

std::string name_of(const JsonNode& node) {
  const nlohmann::json& value = node.value();
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string())
    node.fail("is {}, expected a string or an integer",
              value.is_number() ? value.dump() : fmt::format("of type {}", value.type_name()));
  return node.string();
}

void fail_at(const DataFile& file, std::size_t line, std::string_view what) {
  fail("{}:{}: {}", file.name, line, what);
}

std::string excerpt_of(std::string_view text) {
  constexpr std::size_t most = 60;
  const std::size_t end = text.size() <= most ? text.size() : character_begin(text, most);
  std::string excerpt;
  for (const char c : text.substr(0, end)) c == '\0' ? excerpt += "\\x00" : excerpt += c;
  if (end < text.size()) excerpt += " ..";
  return excerpt;
}

}  // namespace bertcl::text
