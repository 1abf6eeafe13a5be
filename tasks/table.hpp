// SPDX-License-Identifier: Apache-2.0
// Tables of text: comma-separated values (RFC 4180), or fields between tabs.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::tasks {

/// Rows of a file of fields with `separator`. `quotes`: a field in double quotes may hold
/// separators and line ends, and "" is a quote. Blank lines are left out, before the first row also
/// those of tabs.
struct Table {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  ///< [rows] from 1: where each begins
};
Table parse_table(std::string_view text, char separator, bool quotes, const std::string& origin);

/// The separator of a table's fields: a comma in a .csv, a tab in a .tsv, case aside; of standard
/// input ("-") a tab where the first line of `content` that is not blank has one, else a comma;
/// else `usual`.
char separator_of(const std::filesystem::path& path, std::string_view content, char usual);

}  // namespace bertcl::tasks
