// SPDX-License-Identifier: Apache-2.0
// Properties of characters as Hugging Face's tokenizers have them: of fixed versions of Unicode,
// since ids must not change with the version of ICU.
#pragma once

namespace bertcl::text {

/// White_Space.
bool is_white_space(char32_t c);
/// Categories L* and N*. Of characters newer than ICU, none.
bool is_letter(char32_t c);
bool is_numeric(char32_t c);
/// `\w` of Unicode's regular expressions (UTS 18): alphabetic, marks, decimal digits, connectors.
bool is_regex_word(char32_t c);
/// Control, format and private use of Unicode 8. Unassigned characters are not among them.
bool is_other_unicode8(char32_t c);
/// Categories P* of Unicode 8, and all punctuation and symbols of ASCII.
bool is_punctuation_unicode8(char32_t c);
/// Category Mn of Unicode 8.
bool is_nonspacing_mark_unicode8(char32_t c);
/// Categories M* of Unicode 9.
bool is_mark_unicode9(char32_t c);
/// BERT's ideographs as the library has them: without U+2B820 to U+2B91F.
bool is_ideograph_of_library(char32_t c);

}  // namespace bertcl::text
