// SPDX-License-Identifier: Apache-2.0
// Data files of texts, also from standard input: lines, and JSON lines.
#include "text/base/data_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/read_bytes.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::text {

namespace {
constexpr std::string_view kBlanks = " \t\r\n";

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

/// Why readers of lines refuse a form, and what to do; "" for a form that they take.
std::string_view refusal_of(Form form) {
  switch (form) {
    case Form::squad:
      return "is a single JSON document; write one object a line (jq -c '.data[].paragraphs[] | "
             "{text: .context}' FILE)";
    case Form::document:
      return "is a single JSON document; write one object a line (jq -c . FILE)";
    case Form::array:
      return "is a JSON array; write one object a line (jq -c '.[]' FILE)";
    case Form::array_of_strings:
      return "is a JSON array; write one text a line (jq -r '.[]' FILE)";
    case Form::carriage_returns:
      return "lines end in CR alone; convert them to LF (tr '\\r' '\\n' < FILE)";
    default:
      return "";
  }
}

}  // namespace

std::string data_name(const std::filesystem::path& path) {
  return path == "-" ? "standard input" : path.string();
}

void check_standard_input() {
  if (std::ferror(stdin))
    throw Error(fmt::format("standard input: cannot read: {}", std::strerror(errno)),
                ErrorCode::io);
}

DataFile read_utf8(const std::filesystem::path& path) {
  DataFile file{data_name(path), {}};
  if (path == "-") {
    file.content = read_all(std::cin);
    check_standard_input();
    if (file.content.starts_with(kByteOrderMark)) file.content.erase(0, kByteOrderMark.size());
  } else {
    file.content = read_file(path);
  }
  refuse_utf16(file);
  if (const auto bad = first_ill_formed(file.content)) {
    const auto end = file.content.begin() + static_cast<long>(*bad);
    fail_at(file, static_cast<std::size_t>(1 + std::count(file.content.begin(), end, '\n')),
            fmt::format("invalid UTF-8 at byte {} of {}; expected UTF-8 text (iconv -f ENCODING -t "
                        "UTF-8 FILE converts other encodings)",
                        *bad, file.content.size()));
  }
  return file;
}

Form form_of(const std::filesystem::path& path, std::string_view content) {
  const std::string extension = lower_ascii(path.extension().string());
  const bool is_json = extension == ".json";
  // JSON may be marked twice.
  const std::string_view text = trimmed(without_byte_order_mark(content));
  const std::string_view first = trimmed(text.substr(0, text.find('\n')));
  const std::string_view inside = trimmed(text.substr(text.empty() ? 0 : 1));
  if (text.starts_with('[')) {
    // A text may begin with ["a"].
    const std::string_view between = text.substr(0, text.size() - inside.size());
    if (inside.starts_with('"') && (is_json || between.find('\n') != between.npos))
      return Form::array_of_strings;
    const std::string_view key = inside.starts_with('{') ? trimmed(inside.substr(1)) : "";
    if (is_json || key.starts_with('"') || key.starts_with('}')) return Form::array;
  } else if (text.starts_with('{') && inside.starts_with('"')) {
    // A line that is broken elsewhere is one of JSON, too, and an error where it is read.
    const bool goes_on = first.find_last_of(",[{:") == first.size() - 1 && !first.ends_with("},");
    // The first key tells: a SQuAD file may be long.
    const bool is_squad = (inside.starts_with("\"data\"") || inside.starts_with("\"version\"")) &&
                          has_data_array(first);
    // Nothing else tells what one object with nothing but data is meant to be.
    const bool alone = first.size() == text.size();
    if (!goes_on && !is_squad && !(alone && has_data_alone(first))) return Form::json_lines;
    return has_data_array(text) ? Form::squad : Form::document;
  } else if (text.starts_with('{')) {
    if (first.size() < text.size() && trimmed(first.substr(1)) == "}") return Form::json_lines;
    if (is_json) return Form::document;
  }
  if (content.find('\r') < content.size() - 1 && content.find('\n') == content.npos)
    return Form::carriage_returns;
  if (path == "-")
    return first_line(content).text.find('\t') == content.npos ? Form::commas : Form::tabs;
  return extension == ".csv" ? Form::commas : extension == ".tsv" ? Form::tabs : Form::lines;
}

DataFile read_data(const std::filesystem::path& path, std::initializer_list<Form> taken) {
  DataFile file = read_utf8(path);
  file.form = form_of(path, file.content);
  const std::string_view refusal = refusal_of(file.form);
  if (!refusal.empty() && std::ranges::find(taken, file.form) == taken.end())
    fail("{}: {}", file.name, refusal);
  return file;
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
  constexpr std::size_t max_bytes = 60;
  const std::size_t end = text.size() <= max_bytes ? text.size() : character_begin(text, max_bytes);
  std::string excerpt;
  for (const char c : text.substr(0, end)) c == '\0' ? excerpt += "\\x00" : excerpt += c;
  if (end < text.size()) excerpt += " ..";
  return excerpt;
}

}  // namespace bertcl::text
