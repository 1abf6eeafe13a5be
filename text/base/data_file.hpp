// SPDX-License-Identifier: Apache-2.0
// Data files of texts, also from standard input: lines, and JSON lines.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>

#include "text/base/json_node.hpp"

namespace bertcl::text {

/// What a file holds. Readers that know no tables take those as lines.
enum class Form {
  lines,             ///< of text
  commas,            ///< a table (.csv)
  tabs,              ///< a table (.tsv)
  json_lines,        ///< a JSON object on each line
  squad,             ///< one JSON object, whole or damaged, with an array `data`
  document,          ///< one JSON object
  array,             ///< a JSON array
  array_of_strings,  ///< the same
  carriage_returns,  ///< lines that end in CR alone, as on old Macs
};

/// The form by content, of tables by extension; standard input ("-") is a table of tabs if the
/// first line that is not blank has one, else of commas. A .json that begins with a bracket or
/// brace is JSON.
Form form_of(const std::filesystem::path& path, std::string_view content);

/// The file's name in messages: the path, or "standard input" for "-".
std::string data_name(const std::filesystem::path& path);

/// Throws Error where the last read of standard input failed: std::cin, which reads through stdin,
/// only ends there.
void check_standard_input();

struct DataFile {
  std::string name;     ///< data_name()
  std::string content;  ///< without a byte order mark
  Form form = Form::lines;
};

/// A file of any text in UTF-8; its form is not looked at. "-" is standard input, which can be read
/// once. Throws Error that names file and line where it is not UTF-8: another encoding would lose
/// letters without a word; also if it seems to be UTF-16.
DataFile read_utf8(const std::filesystem::path& path);

/// The same with its form. Throws Error, with what to do, for a form after json_lines that is not
/// in `taken`: it would be read as lines of text.
DataFile read_data(const std::filesystem::path& path, std::initializer_list<Form> taken = {});

bool is_blank(std::string_view text);
std::string_view trimmed(std::string_view text);

/// The first line that is not blank, without its end, and its number, from 1; "" and 0 if all are.
struct FirstLine {
  std::string_view text;
  std::size_t number = 0;
};
FirstLine first_line(std::string_view content);

/// Calls visit(line, number) for each line, without its end.
void each_line(std::string_view content,
               const std::function<void(std::string_view line, std::size_t number)>& visit);

/// The same of a file whose lines are texts, each with its result: a blank line is a text, too, so
/// that result i belongs to line i. Throws Error "..: contains no UNIT" if the file is empty.
void each_text(const DataFile& file, std::string_view unit,
               const std::function<void(std::string_view line, std::size_t number)>& visit);

/// Line `number` of a stream that is read as it comes, without its end; the first without a byte
/// order mark. False where there is none.
bool read_line(std::istream& stream, std::string& line, std::size_t number);

/// Calls visit(object, number) for each line that is not blank. What is broken, missing or of
/// another type is an Error "dev.jsonl:3: ..; HINT".
void each_object(const DataFile& file, std::string_view hint,
                 const std::function<void(const JsonNode& object, std::size_t number)>& visit);

/// An id or a label: a string, or an integer in decimal.
std::string name_of(const JsonNode& node);

/// Error "dev.tsv:3: WHAT".
[[noreturn]] void fail_at(const DataFile& file, std::size_t line, std::string_view what);

/// The beginning of a text, for messages, which would end at a NUL: that is \\x00.
std::string excerpt_of(std::string_view text);

}  // namespace bertcl::text
