// SPDX-License-Identifier: Apache-2.0
// Parts of a text around marked spans.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "squad/features.hpp"

namespace bertcl::tools {

/// The marks around the span: bold for a terminal, brackets elsewhere.
struct Marks {
  std::string before, after;
};

/// The span between its marks with about `around` bytes of `text` on each side, cut between words;
/// "..." stands where something was cut. White space is single spaces, for one paragraph.
std::string excerpt(std::string_view text, squad::Span span, const Marks& marks,
                    std::size_t around = 240);

/// A piece of an excerpt, and which of two spans it is part of.
struct ExcerptPart {
  std::string text;
  bool in_one = false, in_other = false;
};

/// The same for two spans, which may overlap or be far from each other, with "..." between them. An
/// empty option marks nothing; without both it is the beginning of the text.
std::vector<ExcerptPart> excerpt_of_two(std::string_view text, std::optional<squad::Span> one,
                                        std::optional<squad::Span> other, std::size_t around = 160);

}  // namespace bertcl::tools
