// SPDX-License-Identifier: Apache-2.0
// Data files of lines: SST-2, STS-B, CoNLL, plain text.
#include "tasks/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "text/file.hpp"
#include "text/unicode.hpp"

namespace bertcl::tasks {
namespace {

/// The content without a byte order mark. Another encoding would lose letters without a word.
std::string read_text(const std::filesystem::path& path) {
  std::string text = text::read_file(path);
  if (const auto bad = text::first_ill_formed(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(*bad), '\n');
    throw Error(fmt::format("{}:{}: invalid UTF-8 at byte {} of {}", path.string(), line, *bad,
                            text.size()));
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// Calls visit(line, number) for each line, without its end.
template <typename Visit>
void each_line(std::string_view text, const Visit& visit) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, ++number);
    begin = end + 1;
  }
}

/// The beginning of a text, for messages.
std::string excerpt(std::string_view text) {
  constexpr std::size_t most = 60;
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + " ..";
}

std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

[[noreturn]] void fail(const std::filesystem::path& path, std::size_t line,
                       const std::string& what) {
  throw Error(fmt::format("{}:{}: {}", path.string(), line, what));
}

/// Where the texts and the score of a pair stand in a row.
struct PairColumns {
  std::size_t first = 0, second = 1, score = 2;
  std::size_t least = 3;  ///< columns of each row
  bool exact = true;      ///< and no more
};

std::optional<PairColumns> pair_header(const std::vector<std::string>& row) {
  const auto at = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(row.begin(), row.end(), name) - row.begin());
  };
  const PairColumns columns{at("sentence1"), at("sentence2"), at("score"), row.size(), false};
  if (std::max({columns.first, columns.second, columns.score}) == row.size()) return std::nullopt;
  return columns;
}

}  // namespace

std::vector<ClassifiedText> read_sst2(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  std::vector<ClassifiedText> texts;
  each_line(text, [&](std::string_view line, std::size_t number) {
    if (is_blank(line)) return;
    const std::size_t tab = line.rfind('\t');
    const std::string_view label =
        tab == std::string_view::npos ? std::string_view() : trimmed(line.substr(tab + 1));
    if (number == 1 && label == "label") return;
    if (label != "0" && label != "1") {
      fail(path, number,
           fmt::format("ends in '{}'; expected a text, a tab, and 0 (negative) or 1 (positive)",
                       excerpt(label.empty() ? trimmed(line) : label)));
    }
    texts.push_back({std::to_string(texts.size()), std::string(trimmed(line.substr(0, tab))),
                     label == "1" ? 1 : 0});
  });
  if (texts.empty()) throw Error(path.string() + ": contains no texts");
  return texts;
}

Table parse_table(std::string_view text, char separator, bool quotes, const std::string& origin) {
  Table table;
  std::vector<std::string> row;
  std::string field;
  std::size_t line = 1, row_line = 1, quote_line = 0;
  bool in_quotes = false, was_quoted = false;
  const auto end_field = [&] {
    row.push_back(std::exchange(field, {}));
    was_quoted = false;
  };
  const auto end_row = [&] {
    if (!row.empty() || was_quoted || !is_blank(field)) {
      end_field();
      table.rows.push_back(std::exchange(row, {}));
      table.lines.push_back(row_line);
    }
    field.clear();
    row_line = line;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_quotes) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        in_quotes = false;
      }
    } else if (quotes && c == '"' && field.empty() && !was_quoted) {
      in_quotes = was_quoted = true;
      quote_line = line;
    } else if (c == separator) {
      end_field();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r' || i + 1 == text.size() || text[i + 1] != '\n') {
      field += c;
    }
  }
  if (in_quotes) throw Error(fmt::format("{}:{}: unterminated quote", origin, quote_line));
  end_row();
  return table;
}

std::vector<ScoredPair> read_stsb(const std::filesystem::path& path) {
  const bool tabs = path.extension() == ".tsv";
  const std::string text = read_text(path);
  const Table table = parse_table(text, tabs ? '\t' : ',', !tabs, path.string());
  PairColumns columns;
  std::vector<ScoredPair> pairs;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    if (i == 0) {
      if (const auto header = pair_header(row)) {
        columns = *header;
        continue;
      }
    }
    if (row.size() < columns.least || (columns.exact && row.size() > columns.least)) {
      fail(
          path, table.lines[i],
          fmt::format("{} columns, expected {}: two texts and a score", row.size(), columns.least));
    }
    const auto score = parse_number(row[columns.score]);
    if (!score) {
      fail(path, table.lines[i],
           fmt::format("the score is '{}', expected a number", excerpt(row[columns.score])));
    }
    pairs.push_back(
        {std::to_string(pairs.size()), row[columns.first], row[columns.second], *score});
  }
  if (pairs.empty()) throw Error(path.string() + ": contains no pairs of texts");
  return pairs;
}

std::vector<TaggedSentence> read_conll(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  std::vector<TaggedSentence> sentences;
  bool open = false;
  each_line(text, [&](std::string_view line, std::size_t number) {
    line = trimmed(line);
    // The development file of WNUT17 ends in a byte order mark.
    if (line.empty() || line == "\xEF\xBB\xBF" || line.starts_with("-DOCSTART-")) {
      open = false;
      return;
    }
    const std::size_t word_end = line.find_first_of(" \t");
    const std::string_view tag = line.substr(line.find_last_of(" \t") + 1);
    const bool is_tag = tag == "O" || (tag.size() > 2 && tag[1] == '-' &&
                                       std::string_view("BIES").find(tag[0]) != tag.npos);
    if (word_end == std::string_view::npos || !is_tag) {
      fail(path, number,
           fmt::format("'{}': expected a word, a tab, and a tag: O, B-person, I-person",
                       excerpt(line)));
    }
    if (!open) sentences.emplace_back();
    open = true;
    sentences.back().words.emplace_back(line.substr(0, word_end));
    sentences.back().tags.emplace_back(tag);
  });
  if (sentences.empty()) throw Error(path.string() + ": contains no sentences");
  return sentences;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  std::vector<std::string> lines;
  each_line(text, [&](std::string_view line, std::size_t) {
    if (!is_blank(line)) lines.emplace_back(line);
  });
  if (lines.empty()) throw Error(path.string() + ": contains no texts");
  return lines;
}

}  // namespace bertcl::tasks
