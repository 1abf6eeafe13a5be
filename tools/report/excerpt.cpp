// SPDX-License-Identifier: Apache-2.0
// An excerpt of a text around a marked span.
#include "tools/report/excerpt.hpp"

#include <algorithm>

#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

/// Runs of white space become one space; the rest is made printable.
std::string one_line(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool space = kSpace.find(c) != std::string_view::npos;
    if (!space) {
      result += c;
    } else if (result.empty() || result.back() != ' ') {
      result += ' ';
    }
  }
  return printable(result);
}

}  // namespace

std::string excerpt(std::string_view text, squad::Span span, const Marks& marks,
                    std::size_t around) {
  std::size_t begin = 0, end = text.size();
  if (span.begin > around) {
    begin = text.find_first_of(kSpace, span.begin - around);
    begin = begin == std::string_view::npos ? span.begin : std::min(begin + 1, span.begin);
  }
  if (end - span.end > around) {
    end = text.find_last_of(kSpace, span.end + around);
    end = end == std::string_view::npos ? span.end : std::max(end, span.end);
  }
  return (begin > 0 ? "... " : "") + one_line(text.substr(begin, span.begin - begin)) +
         marks.before + one_line(text.substr(span.begin, span.end - span.begin)) + marks.after +
         one_line(text.substr(span.end, end - span.end)) + (end < text.size() ? " ..." : "");
}

}  // namespace bertcl::tools
