// SPDX-License-Identifier: Apache-2.0
// The tokens of a text: where they are in it, and how they spell it.
#pragma once
#include <cstdint>
#include <vector>

namespace bertcl::text {

/// Bytes [begin, end) of a text.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// Tokens of a text without special tokens around them.
struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<Span> spans;  ///< [ids] what each stands for; may be empty
  /// [ids] which of the words each belongs to that the tokenizer makes of a text before its model.
  std::vector<std::uint32_t> words;
};

/// How tokens spell a text: pieces of words, those that continue one with "##"; GPT-2's characters
/// of bytes; or pieces with U+2581 for a space.
enum class Spelling { word_pieces, bytes, pieces };

}  // namespace bertcl::text
