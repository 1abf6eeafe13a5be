// SPDX-License-Identifier: Apache-2.0
// Grapheme clusters by the properties that ICU has. Its BreakIterator takes UTF-16 and a lock.
#include "text/pipeline/graphemes.hpp"

#include <unicode/uchar.h>

#include "text/base/unicode.hpp"

namespace bertcl::text {
namespace {

UGraphemeClusterBreak break_class(char32_t c) {
  return static_cast<UGraphemeClusterBreak>(
      u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK));
}

bool is_pictographic(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
}

bool is_control(UGraphemeClusterBreak c) {
  return c == U_GCB_CONTROL || c == U_GCB_CR || c == U_GCB_LF;
}

/// GB6 to GB8: syllables of Hangul.
bool is_one_syllable(UGraphemeClusterBreak a, UGraphemeClusterBreak b) {
  if (a == U_GCB_L) return b == U_GCB_L || b == U_GCB_V || b == U_GCB_LV || b == U_GCB_LVT;
  if (a == U_GCB_LV || a == U_GCB_V) return b == U_GCB_V || b == U_GCB_T;
  return (a == U_GCB_LVT || a == U_GCB_T) && b == U_GCB_T;
}

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  char32_t c = next_code_point(text, end);
  if (c < 0x80 && c != '\r' && (end == text.size() || static_cast<signed char>(text[end]) >= 0))
    return end;  // two characters of ASCII
  UGraphemeClusterBreak last = break_class(c);
  bool pictograph = is_pictographic(c);  // and marks since then
  bool joined = false;                   // by U+200D after them
  int indicators = last == U_GCB_REGIONAL_INDICATOR ? 1 : 0;
  while (end < text.size()) {
    std::size_t next = end;
    c = next_code_point(text, next);
    const UGraphemeClusterBreak own = break_class(c);
    if (last == U_GCB_CR ? own != U_GCB_LF : is_control(last)) break;
    const bool extends = own == U_GCB_EXTEND || own == U_GCB_ZWJ || own == U_GCB_SPACING_MARK;
    const bool joins = (last == U_GCB_CR && own == U_GCB_LF) || extends || last == U_GCB_PREPEND ||
                       is_one_syllable(last, own) || (joined && is_pictographic(c)) ||
                       (own == U_GCB_REGIONAL_INDICATOR && indicators % 2 == 1);
    if (!joins || (is_control(own) && own != U_GCB_LF)) break;
    joined = pictograph && own == U_GCB_ZWJ;
    pictograph = is_pictographic(c) || (pictograph && (own == U_GCB_EXTEND || own == U_GCB_ZWJ));
    indicators = own == U_GCB_REGIONAL_INDICATOR ? indicators + 1 : 0;
    last = own;
    end = next;
  }
  return end;
}

}  // namespace bertcl::text
