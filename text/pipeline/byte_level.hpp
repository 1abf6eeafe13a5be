// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte level: each byte as a printable character, and the splitting of texts.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "text/pipeline/parts.hpp"

namespace bertcl::text {

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Matches of kGpt2Pattern that cover a text.
void find_gpt2(std::string_view text, std::vector<Match>& matches);

/// The character that each byte is written as: printable ones as themselves, others from U+0100 on.
std::array<char32_t, 256> characters_of_bytes();

/// Each byte of a part as its character: a space is U+0120.
Stage byte_characters();

/// `ByteLevel` as pre-tokenizer.
Stage byte_level(bool add_prefix_space, bool use_regex);

/// Puts characters before a part, which share the origin of its first one. Does nothing to an empty
/// part.
void prepend(Edits& edits, std::string_view characters);

}  // namespace bertcl::text
