// SPDX-License-Identifier: Apache-2.0
// Tables of text: comma-separated values (RFC 4180), or fields between tabs.
#include "tasks/data/table.hpp"

#include <utility>

#include "support/fail.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {

Table parse_table(std::string_view text, char separator, bool quotes, const std::string& origin) {
  Table table;
  const text::FirstLine first = text::first_line(text);
  if (first.number == 0) return table;
  std::vector<std::string> row;
  std::string field;
  std::size_t line = first.number, row_line = line, quote_line = 0;
  bool in_quotes = false, was_quoted = false;
  const auto end_field = [&] {
    row.push_back(std::exchange(field, {}));
    was_quoted = false;
  };
  const auto end_row = [&] {
    if (!row.empty() || was_quoted || !text::is_blank(field)) {
      end_field();
      table.rows.push_back(std::exchange(row, {}));
      table.lines.push_back(row_line);
    }
    field.clear();
    row_line = line;
  };
  const auto begin = static_cast<std::size_t>(first.text.data() - text.data());
  for (std::size_t i = begin; i < text.size(); ++i) {
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
      // Else two unclosed quotes would make one field of the rows between them.
      if (was_quoted && !text::is_blank(text.substr(i, 1)))
        fail(
            "{}:{}: text after a closing quote (its field begins in line {}); a quote inside "
            "quotes is written twice",
            origin, line, quote_line);
      field += c;
    }
  }
  if (in_quotes) fail("{}:{}: unterminated quote", origin, quote_line);
  end_row();
  return table;
}

}  // namespace bertcl::tasks
