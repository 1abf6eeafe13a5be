// SPDX-License-Identifier: Apache-2.0
// Tables of texts and classes, or of pairs and scores: what their headers name, and their rows.
#include "tasks/read_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "support/parse_number.hpp"
#include "tasks/table.hpp"
#include "text/unicode.hpp"

namespace bertcl::tasks {
namespace {

std::optional<double> parse_score(std::string_view text) {
  const auto value = parse_number<double>(text::trimmed(text));
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
                      std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (is_named(row[i], name)) return i;
  return row.size();
}

std::optional<PairColumns> pair_header(const std::vector<std::string>& row) {
  const PairColumns columns{column_of(row, {"sentence1"}), column_of(row, {"sentence2"}),
                            column_of(row, {"score"}), row.size(), true};
  if (std::max({columns.first, columns.second, columns.score}) == row.size()) return std::nullopt;
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
  return column_of(row, {"label", "labels"}) == row.size() &&
         column_of(row, {"text", "sentence", "sentence1", "text_pair", "sentence2"}) < row.size();
}

/// True for a header with names of classes that is more than "..<tab>label".
bool names_columns(const std::vector<std::string>& row) {
  if (column_of(row, {"label", "labels"}) == row.size()) return false;
  if (row.size() > 2) return true;
  return row.size() == 2 &&
         (is_named(row[1], "labels") || column_of(row, {"text", "sentence", "sentence1"}) == 1);
}

}  // namespace

void read_scored_table(const text::DataFile& file, char separator, std::vector<ScoredPair>& pairs) {
  const Table table = parse_table(file.content, separator, separator == ',', file.name);
  PairColumns columns;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    if (i == 0) {
      if (const auto header = pair_header(row)) {
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
    if (i == 0 && column_of(row, {"label", "labels"}) < row.size()) {
      header = true;
      width = row.size();
      label = column_of(row, {"labels", "label"});
      several = is_named(row[label], "labels");
      first = column_of(row, {"text", "sentence", "sentence1"});
      second = column_of(row, {"text_pair", "sentence2"});
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

void read_classified_lines(const text::DataFile& file, bool is_table,
                           std::vector<ClassifiedText>& texts) {
  std::string_view head = std::string_view(file.content).substr(0, file.content.find('\n'));
  if (head.ends_with('\r')) head.remove_suffix(1);
  const Table first = parse_table(head, '\t', false, file.name);
  if (!first.rows.empty() && first.rows[0].size() > 1 && lacks_label(first.rows[0]))
    refuse_header(file, 1, first.rows[0]);
  if (!first.rows.empty() && names_columns(first.rows[0]))
    return read_classified_table(file, '\t', texts);
  bool header = false;
  text::each_line(file.content, [&](std::string_view line, std::size_t number) {
    if (text::is_blank(line)) return;
    const std::size_t tab = line.rfind('\t');
    const std::string_view label =
        tab == line.npos ? std::string_view() : text::trimmed(line.substr(tab + 1));
    if (number == 1 && is_named(label, "label")) {
      header = true;
      return;
    }
    if (label.empty())
      text::fail_at(file, number,
                    fmt::format("'{}': expected a text, a tab, and its class",
                                text::excerpt_of(text::trimmed(line))));
    const auto columns = static_cast<std::size_t>(1 + std::ranges::count(line, '\t'));
    if (is_table && columns > 2) refuse_row(file, number, columns, 2, header, '\t');
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
