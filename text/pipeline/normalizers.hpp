// SPDX-License-Identifier: Apache-2.0
// The normalizers of a tokenizer.json: they rewrite the text before it is split.
#pragma once
#include <string>
#include <string_view>

#include "text/base/json_node.hpp"
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

enum class Normalization { nfc, nfd, nfkc, nfkd };
/// Normal forms of Unicode 9. A character newer than that is its own.
Stage unicode_normalizer(Normalization form);

/// `Lowercase`: each character by itself, so that a capital sigma that ends a word is U+03C3.
void lower_case(Parts& parts);

/// SentencePiece's rules of rewriting, as its models hold them: the size of a double-array trie in
/// bytes (32 bits, little endian), the trie, and the replacements, each ended by a zero byte.
/// Throws Error with `place` on damage.
Stage charsmap_normalizer(std::string_view charsmap, const std::string& place);

/// That of a node "normalizer". Throws Error by name on a kind that is not supported.
Stage read_normalizer(const JsonNode& node);

/// Those that `read` makes of the elements of an array, one after the other.
Stage sequence_of(const JsonNode& nodes, Stage (*read)(const JsonNode&));

}  // namespace bertcl::text
