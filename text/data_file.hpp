// SPDX-License-Identifier: Apache-2.0
// Data files of texts, also from standard input: lines, and JSON lines.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "text/json_node.hpp"

namespace bertcl::text {

struct DataFile {
  std::string name;     ///< for messages: the path, or "standard input"
  std::string content;  ///< without a byte order mark
};

/// A file of any text in UTF-8. "-" is standard input. Throws Error that names file and line where
/// it is not UTF-8; also if it seems to be UTF-16.
DataFile read_utf8(const std::filesystem::path& path);

/// "-" is standard input, which can be read once. Throws Error that names file and line where it is
/// not UTF-8: another encoding would lose letters without a word; and where it is a JSON array, or
/// a JSON object over several lines or of SQuAD, which would be read as lines of text, or where its
/// lines end in CR alone. A .json that begins with a brace is such an object, too, also damaged.
DataFile read_data(const std::filesystem::path& path);

/// The same for those who read such objects, or call refuse_document().
DataFile read_data_or_document(const std::filesystem::path& path);
void refuse_document(const DataFile& file);

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

/// True for a JSON object on each line. A SQuAD file is none, also where it has one line.
bool is_json_lines(std::string_view content);

/// True for a JSON object, whole or damaged, that has an array `data`.
bool is_squad(std::string_view content);

/// True for a JSON array of objects: "[{" and the quote of a member, whatever the blanks.
bool begins_as_array(std::string_view content);

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
