// SPDX-License-Identifier: Apache-2.0
// Lines of a text.
#pragma once
#include <algorithm>
#include <string_view>

namespace bertcl::quant {

/// Calls `visit(line, number)` for each line that is not empty; numbers count from 1. Ends of lines
/// may be those of DOS.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) visit(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace bertcl::quant
