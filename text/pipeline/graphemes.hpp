// SPDX-License-Identifier: Apache-2.0
// Where one character of the reader ends and the next one begins.
#pragma once
#include <cstddef>
#include <string_view>

namespace bertcl::text {

/// End of the extended grapheme cluster that begins at byte `begin` (UAX 29, rules GB3 to GB13;
/// of GB9c, which is about conjuncts of Indic scripts, nothing). Requires begin < text.size().
std::size_t grapheme_end(std::string_view text, std::size_t begin);

}  // namespace bertcl::text
