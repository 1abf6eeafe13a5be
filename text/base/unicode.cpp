// SPDX-License-Identifier: Apache-2.0
// Unicode properties by ICU, with short cuts for ASCII.
#include "text/base/unicode.hpp"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::text {
namespace {

std::uint32_t category_mask(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)); }

icu::UnicodeString to_utf16(std::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
}

}  // namespace

std::string lower_ascii(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < 0x80) {
    ++position;
    return first;
  }
  UChar32 c = 0;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  U8_NEXT_OR_FFFD(bytes, position, text.size(), c);
  return static_cast<char32_t>(c);
}

void append_code_point(std::string& text, char32_t c) {
  std::uint8_t bytes[U8_MAX_LENGTH];
  std::int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, c);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t position = 0; position < text.size(); ++count) next_code_point(text, position);
  return count;
}

std::size_t character_begin(std::string_view text, std::size_t position) {
  while (position > 0 && is_inside(text, position)) --position;
  return position;
}

std::optional<std::size_t> first_ill_formed(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    UChar32 c = 0;
    U8_NEXT(bytes, position, text.size(), c);
    if (c < 0) return begin;
  }
  return std::nullopt;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || (category_mask(c) & U_GC_Z_MASK) != 0;
}

bool is_word_character(char32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  return (category_mask(c) & U_GC_L_MASK) != 0 ||
         u_getNumericValue(static_cast<UChar32>(c)) != U_NO_NUMERIC_VALUE;
}

bool is_other_category(char32_t c) { return (category_mask(c) & U_GC_C_MASK) != 0; }

bool is_nonspacing_mark(char32_t c) { return (category_mask(c) & U_GC_MN_MASK) != 0; }

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  return (category_mask(c) & U_GC_P_MASK) != 0;
}

bool is_cjk_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string lower(std::string_view text) {
  if (is_ascii(text)) return lower_ascii(text);
  std::string result;
  to_utf16(text).toLower(icu::Locale::getRoot()).toUTF8String(result);
  return result;
}

std::string without_accents(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  if (U_FAILURE(status))
    throw Error(std::string("ICU cannot decompose a text (NFD): ") + u_errorName(status));
  // Not by normalize(), which puts marks in order one by one: a text of marks takes quadratic time.
  std::string result;
  std::vector<std::pair<std::uint8_t, char32_t>> marks;  // kept, by combining class
  const auto flush = [&] {
    std::ranges::stable_sort(marks, {}, [](const auto& mark) { return mark.first; });
    for (const auto& mark : marks) append_code_point(result, mark.second);
    marks.clear();
  };
  const auto add = [&](char32_t c) {
    const std::uint8_t order = nfd->getCombiningClass(static_cast<UChar32>(c));
    if (order == 0) flush();  // also at a mark of class 0: nothing changes places with it
    if (is_nonspacing_mark(c)) return;
    if (order == 0)
      append_code_point(result, c);
    else
      marks.emplace_back(order, c);
  };
  icu::UnicodeString parts;
  for (std::size_t position = 0; position < text.size();) {
    const char32_t c = next_code_point(text, position);
    if (c < 0x80 || !nfd->getDecomposition(static_cast<UChar32>(c), parts)) {
      add(c);
      continue;
    }
    for (std::int32_t i = 0; i < parts.length(); i += U16_LENGTH(parts.char32At(i)))
      add(static_cast<char32_t>(parts.char32At(i)));
  }
  flush();
  return result;
}

}  // namespace bertcl::text
