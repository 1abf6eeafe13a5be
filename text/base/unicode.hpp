// SPDX-License-Identifier: Apache-2.0
// The Unicode functions of tokenizer and metrics, with the semantics of Python's str and re.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bertcl::text {

/// A..Z as a..z; other characters stay.
std::string lower_ascii(std::string_view text);

/// Decodes the code point at byte `position` of UTF-8 `text` and moves `position` after it.
/// An ill-formed sequence gives U+FFFD. Requires position < text.size().
char32_t next_code_point(std::string_view text, std::size_t& position);

/// Appends `c` in UTF-8.
void append_code_point(std::string& text, char32_t c);

/// Number of code points, that is Python's len().
std::size_t count_code_points(std::string_view text);

/// Whether byte `position` of UTF-8 `text` continues a character; false at the end.
inline bool is_inside(std::string_view text, std::size_t position) {
  return position < text.size() && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80;
}

/// The position where the character begins to which byte `position` belongs.
std::size_t character_begin(std::string_view text, std::size_t position);

/// Byte at which `text` stops being UTF-8; none if all of it is.
std::optional<std::size_t> first_ill_formed(std::string_view text);

/// True if every byte is below 128.
bool is_ascii(std::string_view text);

/// str.isspace(): what str.split() splits at.
bool is_space(char32_t c);

/// `\w` of Python's re: letters, everything with a numeric value, and the underscore.
/// Combining marks are not among them.
bool is_word_character(char32_t c);

/// Any general category C*: control, format, surrogate, private use, unassigned.
bool is_other_category(char32_t c);

/// Category Mn.
bool is_nonspacing_mark(char32_t c);

/// Category P*, and of ASCII also the symbols ($ + < = > ^ ` | ~), as BERT has it.
bool is_bert_punctuation(char32_t c);

/// The blocks that BERT takes for Chinese characters: each is a word of its own.
bool is_cjk_ideograph(char32_t c);

/// str.lower(): full Unicode mapping, final sigma included.
std::string lower(std::string_view text);

/// Canonical decomposition (NFD), and all of category Mn dropped.
std::string without_accents(std::string_view text);

}  // namespace bertcl::text
