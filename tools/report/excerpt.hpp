// SPDX-License-Identifier: Apache-2.0
// An excerpt of a text around a marked span.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace bertcl::tools
