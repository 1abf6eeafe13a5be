// SPDX-License-Identifier: Apache-2.0
// Parts of a text around marked spans.
#include "tools/report/excerpt.hpp"

#include <algorithm>
#include <utility>

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

/// The part of `text` around a span, cut between words.
squad::Span surroundings(std::string_view text, squad::Span span, std::size_t around) {
  std::size_t begin = 0, end = text.size();
  if (span.begin > around) {
    begin = text.find_first_of(kSpace, span.begin - around);
    begin = begin == std::string_view::npos ? span.begin : std::min(begin + 1, span.begin);
  }
  if (end - span.end > around) {
    end = text.find_last_of(kSpace, span.end + around);
    end = end == std::string_view::npos ? span.end : std::max(end, span.end);
  }
  return {begin, end};
}

}  // namespace

std::string excerpt(std::string_view text, squad::Span span, const Marks& marks,
                    std::size_t around) {
  const auto [begin, end] = surroundings(text, span, around);
  return (begin > 0 ? "... " : "") + one_line(text.substr(begin, span.begin - begin)) +
         marks.before + one_line(text.substr(span.begin, span.end - span.begin)) + marks.after +
         one_line(text.substr(span.end, end - span.end)) + (end < text.size() ? " ..." : "");
}

std::vector<ExcerptPart> excerpt_of_two(std::string_view text, std::optional<squad::Span> one,
                                        std::optional<squad::Span> other, std::size_t around) {
  std::vector<squad::Span> windows;
  std::vector<std::size_t> cuts;
  for (const std::optional<squad::Span>& span : {one, other}) {
    if (!span) continue;
    windows.push_back(surroundings(text, *span, around));
    cuts.insert(cuts.end(), {span->begin, span->end});
  }
  if (windows.empty() && !text.empty()) windows.push_back(surroundings(text, {0, 0}, 2 * around));
  if (windows.size() == 2) {
    if (windows[1].begin < windows[0].begin) std::swap(windows[0], windows[1]);
    if (windows[1].begin <= windows[0].end) {
      windows[0].end = std::max(windows[0].end, windows[1].end);
      windows.pop_back();
    }
  }
  for (const squad::Span& window : windows) cuts.insert(cuts.end(), {window.begin, window.end});
  std::ranges::sort(cuts);

  const auto holds = [](const std::optional<squad::Span>& span, std::size_t at) {
    return span && span->begin <= at && at < span->end;
  };
  std::vector<ExcerptPart> parts;
  std::size_t done = 0;
  for (const squad::Span& window : windows) {
    if (window.begin > done) parts.push_back({done > 0 ? " ... " : "... ", false, false});
    std::size_t at = window.begin;
    for (const std::size_t cut : cuts) {
      if (cut <= at || cut > window.end) continue;
      parts.push_back({one_line(text.substr(at, cut - at)), holds(one, at), holds(other, at)});
      at = cut;
    }
    done = window.end;
  }
  if (done < text.size()) parts.push_back({" ...", false, false});
  return parts;
}

}  // namespace bertcl::tools
