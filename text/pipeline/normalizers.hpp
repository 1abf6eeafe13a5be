// SPDX-License-Identifier: Apache-2.0
// The normalizers of a tokenizer.json: they rewrite the text before it is split.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_node.hpp"
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

using Stages = std::vector<std::unique_ptr<Stage>>;

struct BertNormalizerOptions {
  bool clean_text = true;
  bool split_cjk = true;
  bool strip_accents = true;
  bool lower_case = true;
};
std::unique_ptr<Stage> bert_normalizer(const BertNormalizerOptions& options);

enum class Normalization { nfc, nfd, nfkc, nfkd };
/// Normal forms of Unicode 9. A character newer than that is its own.
std::unique_ptr<Stage> unicode_normalizer(Normalization form);

/// SentencePiece's rules of rewriting, as its models hold them: the size of a double-array trie in
/// bytes (32 bits, little endian), the trie, and the replacements, each ended by a zero byte.
/// Throws Error with `place` on damage.
std::unique_ptr<Stage> charsmap_normalizer(std::string_view charsmap, const std::string& place);

/// Adds the stages of a node "normalizer". Throws Error by name on a kind that is not supported.
void add_normalizers(const JsonNode& node, Stages& stages);

}  // namespace bertcl::text
