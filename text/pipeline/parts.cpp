// SPDX-License-Identifier: Apache-2.0
// Where the characters of a rewritten text come from, and how matches become parts.
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

Parts::Parts(std::string_view original) {
  text.reserve(original.size());
  spans.reserve(original.size());
  for (std::size_t position = 0; position < original.size();) {
    const std::size_t begin = position;
    const char32_t c = next_code_point(original, position);
    const Span span{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(position)};
    if (c == 0xFFFD) {
      append_code_point(text, c);
    } else {
      text.append(original, begin, position - begin);
    }
    spans.resize(text.size(), span);
  }
  parts.push_back({0, static_cast<std::uint32_t>(text.size()), 0, -1});
}

void Edits::keep(std::size_t bytes) {
  to_.text.append(from_.text, position_, bytes);
  const auto first = from_.spans.begin() + position_;
  to_.spans.insert(to_.spans.end(), first, first + static_cast<std::ptrdiff_t>(bytes));
  position_ += static_cast<std::uint32_t>(bytes);
}

void Edits::skip_character() {
  if (at_end()) return;
  std::size_t position = position_;
  next_code_point(from_.text, position);
  position_ = static_cast<std::uint32_t>(position);
}

Span Edits::before() const {
  if (position_ == part_.begin) return {part_.origin, part_.origin};
  return from_.spans[position_ - 1];
}

void Edits::put(char32_t c, int change) {
  const Span span = change > 0 || at_end() ? before() : from_.spans[position_];
  append_code_point(to_.text, c);
  to_.spans.resize(to_.text.size(), span);
  for (int skipped = 0; skipped <= -change; ++skipped) skip_character();
}

void Edits::put_after(std::string_view characters) {
  to_.text.append(characters);
  to_.spans.resize(to_.text.size(), before());
}

namespace {

/// A found match joins what lies before it, unless that was found, too.
template <typename Iterator, typename Join>
Iterator join_found(Iterator first, Iterator last, const Join& join) {
  Iterator out = first;
  bool previous = false;
  for (Iterator match = first; match != last; ++match) {
    const bool found = match->found;
    if (found && !previous && out != first) {
      join(*std::prev(out), *match);
    } else {
      *out++ = *match;
    }
    previous = found;
  }
  return out;
}

}  // namespace

void join_matches(std::vector<Match>& matches, Behavior behavior) {
  switch (behavior) {
    case Behavior::isolated:
      return;
    case Behavior::removed:
      std::erase_if(matches, [](const Match& match) { return match.found; });
      return;
    case Behavior::merged_with_previous:
      matches.erase(join_found(matches.begin(), matches.end(),
                               [](Match& to, const Match& from) { to.end = from.end; }),
                    matches.end());
      return;
    case Behavior::merged_with_next: {
      const auto left = join_found(matches.rbegin(), matches.rend(),
                                   [](Match& to, const Match& from) { to.begin = from.begin; });
      matches.erase(matches.begin(), left.base());
      return;
    }
    case Behavior::contiguous: {
      std::size_t count = 0;
      bool previous = false;
      for (const Match match : matches) {
        if (match.found == previous && count > 0) {
          matches[count - 1].end = match.end;
        } else {
          matches[count++] = match;
        }
        previous = match.found;
      }
      matches.resize(count);
      return;
    }
  }
}

}  // namespace bertcl::text
