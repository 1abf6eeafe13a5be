// SPDX-License-Identifier: Apache-2.0
// Properties by ICU, restricted to the characters of older versions of Unicode.
#include "text/pipeline/properties.hpp"

#include <unicode/uchar.h>

#include <cstdint>

#include "text/base/unicode.hpp"

namespace bertcl::text {
namespace {

std::uint32_t mask_of(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)); }

bool is_older_than(char32_t c, int version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] > 0 && age[0] <= version;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE) != 0;
}

bool is_letter(char32_t c) {
  return c < 0x80 ? is_ascii_letter(c) : (mask_of(c) & U_GC_L_MASK) != 0;
}

bool is_numeric(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : (mask_of(c) & U_GC_N_MASK) != 0;
}

bool is_regex_word(char32_t c) {
  if (c < 0x80) return is_ascii_letter(c) || (c >= '0' && c <= '9') || c == '_';
  return (mask_of(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) != 0 || c == 0x200C ||
         c == 0x200D;
}

bool is_other_unicode8(char32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  return (mask_of(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 && is_older_than(c, 8);
}

// The exceptions below are characters whose category a later version of Unicode has changed.

bool is_punctuation_unicode8(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  if (c == 0x166D || c == 0x111C9) return true;
  return (mask_of(c) & U_GC_P_MASK) != 0 && is_older_than(c, 8);
}

bool is_nonspacing_mark_unicode8(char32_t c) {
  if (c < 0x80 || c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return c == 0x1734 || ((mask_of(c) & U_GC_MN_MASK) != 0 && is_older_than(c, 8));
}

bool is_mark_unicode9(char32_t c) {
  if (c < 0x80 || c == 0x111C9) return false;
  return c == 0x1CF2 || c == 0x1CF3 || ((mask_of(c) & U_GC_M_MASK) != 0 && is_older_than(c, 9));
}

bool is_ideograph_of_library(char32_t c) {
  return is_cjk_ideograph(c) && !(c >= 0x2B820 && c < 0x2B920);
}

}  // namespace bertcl::text
