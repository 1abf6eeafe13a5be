// SPDX-License-Identifier: Apache-2.0
// Tables of texts and classes, or of pairs and scores: what their headers name, and their rows.
#include "tasks/data/read_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "support/parse_number.hpp"
#include "tasks/data/table.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tasks {
namespace {

std::optional<double> parse_score(std::string_view text) {
  text = text::trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// "1 column", "3 columns"
std::string columns_text(std::size_t count) {
  return fmt::format("{} column{}", count, count == 1 ? "" : "s");
}

/// What to do about a row of more columns than its header has; "" for any other.
std::string extra_columns_hint(std::size_t columns, std::size_t header, char separator) {
  if (columns <= header) return "";
  return separator == ',' ? "; put a text that holds commas in double quotes"
                          : "; a text cannot hold a tab: use a .csv with double quotes";
}

constexpr const char* kPairHeader = ", or a header with sentence1, sentence2 and score";

// Names of columns, as of members of JSON lines.
constexpr std::string_view kFirst[] = {"text", "sentence", "sentence1"};
constexpr std::string_view kSecond[] = {"text_pair", "sentence2"};
constexpr std::string_view kLabel[] = {"labels", "label"};
constexpr std::string_view kScore[] = {"score", "label"};

/// Where the texts and the score of a pair stand in a row.
struct PairColumns {
  std::size_t first = 0, second = 1, score = 2;
  std::size_t count = 3;  ///< columns of each row
  bool header = false;    ///< found by the names of a header
};

/// True for a name in a header, whatever its case and the blanks around it.
bool is_named(std::string_view field, std::string_view name) {
  return text::lower_ascii(text::trimmed(field)) == name;
}

/// The column of the first of these names; the number of columns if it has none.
std::size_t column_of(const std::vector<std::string>& row,
                      std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (is_named(row[i], name)) return i;
  return row.size();
}

/// The same of a header. Throws Error if two columns have these names, which is ambiguous.
std::size_t single_column(const text::DataFile& file, std::size_t line,
                          const std::vector<std::string>& row, std::string_view meaning,
                          std::span<const std::string_view> names) {
  const std::size_t column = column_of(row, names);
  for (std::size_t i = 0; i < row.size(); ++i)
    for (const std::string_view name : names)
      if (i != column && is_named(row[i], name))
        text::fail_at(file, line,
                      fmt::format("columns {} and {} both give {} ({}, {}); drop or rename one",
                                  std::min(i, column) + 1, std::max(i, column) + 1, meaning,
                                  text::trimmed(row[std::min(i, column)]),
                                  text::trimmed(row[std::max(i, column)])));
  return column;
}

std::optional<PairColumns> pair_header(const text::DataFile& file, std::size_t line,
                                       const std::vector<std::string>& row) {
  const PairColumns columns{column_of(row, kFirst), column_of(row, kSecond), column_of(row, kScore),
                            row.size(), true};
  if (std::max({columns.first, columns.second, columns.score}) == row.size()) return std::nullopt;
  single_column(file, line, row, "the text", kFirst);
  single_column(file, line, row, "the second text", kSecond);
  // SICK has both: how related two texts are, and the class of the pair.
  const bool has_score = is_named(row[columns.score], kScore[0]);
  single_column(file, line, row, "the score", std::span(kScore).subspan(has_score ? 0 : 1, 1));
  return columns;
}

constexpr const char* kClassifiedColumns = "text (or sentence, sentence1) and label (or labels)";

[[noreturn]] void refuse_header(const text::DataFile& file, std::size_t line,
                                const std::vector<std::string>& row) {
  text::fail_at(
      file, line,
      fmt::format("the header is {}; expected {}; if the first row is data, put a header line "
                  "\"text, label\" above it",
                  text::excerpt_of(fmt::format("{}", fmt::join(row, ", "))), kClassifiedColumns));
}

/// A row of another number of columns than its header has, or than a text and its class.
[[noreturn]] void refuse_row(const text::DataFile& file, std::size_t line, std::size_t columns,
                             std::size_t expected, bool header, char separator) {
  text::fail_at(
      file, line,
      fmt::format(
          "{}, expected {}: {}", columns_text(columns), expected,
          header ? "as the header has" + extra_columns_hint(columns, expected, separator)
                 : fmt::format("a text and its class, or a header with {}", kClassifiedColumns)));
}

/// True for a first row that names texts, but no classes.
bool lacks_label(const std::vector<std::string>& row) {
  return column_of(row, kLabel) == row.size() &&
         std::min(column_of(row, kFirst), column_of(row, kSecond)) < row.size();
}

/// True for a header with names of classes that is more than "..<tab>label".
bool names_columns(const std::vector<std::string>& row) {
  if (column_of(row, kLabel) == row.size()) return false;
  if (row.size() > 2) return true;
  return row.size() == 2 && (is_named(row[1], "labels") || column_of(row, kFirst) == 1);
}

}  // namespace

void read_scored_table(const text::DataFile& file, std::vector<ScoredPair>& pairs) {
  const char separator = file.form == text::Form::tabs ? '\t' : ',';
  const Table table = parse_table(file.content, separator, separator == ',', file.name);
  PairColumns columns;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    if (i == 0) {
      if (const auto header = pair_header(file, table.lines[i], row)) {
        columns = *header;
        continue;
      }
    }
    if (row.size() != columns.count)
      text::fail_at(
          file, table.lines[i],
          fmt::format("{}, expected {}: {}", columns_text(row.size()), columns.count,
                      columns.header ? "as the header has" +
                                           extra_columns_hint(row.size(), columns.count, separator)
                                     : fmt::format("two texts and a score{}", kPairHeader)));
    const auto score = parse_score(row[columns.score]);
    if (!score)
      text::fail_at(file, table.lines[i],
                    fmt::format("the score is '{}', expected a number{}",
                                text::excerpt_of(row[columns.score]), i == 0 ? kPairHeader : ""));
    pairs.push_back(
        {std::to_string(pairs.size()), row[columns.first], row[columns.second], *score});
  }
}

void read_classified_table(const text::DataFile& file, char separator,
                           std::vector<ClassifiedText>& texts) {
  const Table table = parse_table(file.content, separator, separator == ',', file.name);
  std::size_t first = 0, second = 0, label = 1, width = 2;
  bool pairs = false, header = false, several = false;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    if (i == 0 && column_of(row, kLabel) < row.size()) {
      header = true;
      width = row.size();
      label = single_column(file, table.lines[i], row, "the label", kLabel);
      several = is_named(row[label], "labels");
      first = single_column(file, table.lines[i], row, "the text", kFirst);
      second = single_column(file, table.lines[i], row, "the second text", kSecond);
      pairs = second < width;
      if (first == width) refuse_header(file, table.lines[i], row);
      continue;
    }
    if (i == 0 && lacks_label(row)) refuse_header(file, table.lines[i], row);
    if (row.size() != width) refuse_row(file, table.lines[i], row.size(), width, header, separator);
    texts.push_back({std::to_string(texts.size()),
                     std::string(text::trimmed(row[first])),
                     pairs ? std::optional(std::string(text::trimmed(row[second]))) : std::nullopt,
                     std::string(text::trimmed(row[label])),
                     {},
                     table.lines[i],
                     i == 0});
    if (several) texts.back().labels = split_labels(row[label]);
  }
}

void read_classified_lines(const text::DataFile& file, std::vector<ClassifiedText>& texts) {
  const text::FirstLine head = text::first_line(file.content);
  const Table first = parse_table(head.text, '\t', false, file.name);
  if (!first.rows.empty() && first.rows[0].size() > 1 && lacks_label(first.rows[0]))
    refuse_header(file, head.number, first.rows[0]);
  if (!first.rows.empty() && names_columns(first.rows[0]))
    return read_classified_table(file, '\t', texts);
  bool header = false;
  text::each_line(file.content, [&](std::string_view line, std::size_t number) {
    if (text::is_blank(line)) return;
    const std::size_t tab = line.rfind('\t');
    const std::string_view label =
        tab == line.npos ? std::string_view() : text::trimmed(line.substr(tab + 1));
    if (number == head.number && is_named(label, "label")) {
      header = true;
      return;
    }
    if (label.empty())
      text::fail_at(file, number,
                    fmt::format("'{}': expected a text, a tab, and its class",
                                text::excerpt_of(text::trimmed(line))));
    const auto columns = static_cast<std::size_t>(1 + std::ranges::count(line, '\t'));
    if (file.form == text::Form::tabs && columns > 2)
      refuse_row(file, number, columns, 2, header, '\t');
    texts.push_back({std::to_string(texts.size()),
                     std::string(text::trimmed(line.substr(0, tab))),
                     std::nullopt,
                     std::string(label),
                     {},
                     number,
                     texts.empty() && !header});
  });
}

}  // namespace bertcl::tasks
