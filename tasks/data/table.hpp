// SPDX-License-Identifier: Apache-2.0
// Tables of text: comma-separated values (RFC 4180), or fields between tabs.
#pragma once
#include <cstddef>
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

}  // namespace bertcl::tasks
