// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of Hugging Face's tokenizers, for BERT's WordPiece only.
//
//   {"added_tokens": [{"id": 0, "content": "[PAD]", "special": true, ..}, ..],
//    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
//                   "strip_accents": null, "lowercase": true},
//    "pre_tokenizer": {"type": "BertPreTokenizer"},
//    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
//              "max_input_chars_per_word": 100, "vocab": {"[PAD]": 0, ..}}, ..}
#include "text/tokenizer_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "text/json_file.hpp"
#include "text/json_node.hpp"

namespace bertcl::text {
namespace {

// More tokens than any vocabulary has (LaBSE: 501,153): an id above is damage, not a table to make.
constexpr std::int64_t kMostTokens = 1 << 22;
constexpr std::array<std::string_view, 5> kSpecial{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/// The type of a part of the tokenizer must be this one; null counts as none.
JsonNode part(const JsonNode& root, const char* name, const char* type) {
  const std::optional<JsonNode> found = root.find(name);
  if (!found) root.fail(fmt::format("has no {}; expected {}", name, type));
  const std::string other = found->at("type").string();
  if (other != type) found->fail(fmt::format("is of kind {}; expected {}", other, type));
  return *found;
}

std::optional<bool> setting(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  return found ? std::optional(found->boolean()) : std::nullopt;
}

/// Settings that have one value here.
void require(const JsonNode& node, const char* key, const std::string& value) {
  const auto found = node.find(key);
  if (found && found->string() != value)
    found->fail(fmt::format("is \"{}\"; expected \"{}\"", found->string(), value));
}

/// Tokens by their ids, each with one.
class Vocabulary {
 public:
  void add(const std::string& token, const JsonNode& node) {
    const std::int64_t id = node.integer();
    if (id < 0 || id >= kMostTokens)
      node.fail(fmt::format("is the id {}; expected one from 0 to {}", id, kMostTokens - 1));
    const auto at = static_cast<std::size_t>(id);
    if (at >= tokens.size()) {
      tokens.resize(at + 1);
      taken_.resize(at + 1);
    }
    if (taken_[at] && tokens[at] != token)
      node.fail(fmt::format("is the id {}, which \"{}\" already has", id, tokens[at]));
    if (const auto known = ids_.emplace(token, id).first; known->second != id)
      node.fail(
          fmt::format("is the id {}, but \"{}\" already has the id {}", id, token, known->second));
    tokens[at] = token;
    taken_[at] = true;
  }

  std::vector<std::string> tokens;

 private:
  std::vector<bool> taken_;
  std::unordered_map<std::string, std::int64_t> ids_;
};

/// The tokenizers library finds an added token in a text before it finds words. Here it does not:
/// BERT's own are put around texts, others would be lost.
void add_special(const JsonNode& token, Vocabulary& vocabulary) {
  const std::string content = token.at("content").string();
  if (std::find(kSpecial.begin(), kSpecial.end(), std::string_view(content)) == kSpecial.end())
    token.fail(fmt::format(
        "adds the token \"{}\", which is matched before words are split; only {} are supported",
        content, fmt::join(kSpecial, ", ")));
  vocabulary.add(content, token.at("id"));
}

}  // namespace

TokenizerFile parse_tokenizer_json(std::string_view content, const std::string& origin) {
  const nlohmann::json document = parse_json(content, origin);
  const JsonNode root(document, origin, kWordPieceOnly);
  if (!document.contains("model")) root.fail("is JSON, but not a tokenizer.json: it has no model");
  const JsonNode model = part(root, "model", "WordPiece");
  require(model, "unk_token", "[UNK]");
  require(model, "continuing_subword_prefix", "##");

  TokenizerFile file;
  if (const auto longest = model.find("max_input_chars_per_word")) {
    const std::int64_t characters = longest->integer();
    if (characters < 1 || characters > 1'000'000)
      longest->fail(fmt::format("is {}; expected a number from 1 to 1,000,000", characters));
    file.options.max_word_chars = static_cast<int>(characters);
  } else {
    file.options.max_word_chars = 100;  // the library's default
  }
  const JsonNode normalizer = part(root, "normalizer", "BertNormalizer");
  if (!setting(normalizer, "clean_text").value_or(true))
    normalizer.at("clean_text").fail("is false; control characters are always dropped");
  file.options.split_cjk = setting(normalizer, "handle_chinese_chars").value_or(true);
  file.options.lower_case = setting(normalizer, "lowercase").value_or(true);
  file.options.strip_accents = setting(normalizer, "strip_accents");
  part(root, "pre_tokenizer", "BertPreTokenizer");

  Vocabulary vocabulary;
  model.at("vocab").each_member(
      [&](const std::string& token, const JsonNode& id) { vocabulary.add(token, id); });
  if (const auto added = root.find("added_tokens"))
    added->each([&](const JsonNode& token) { add_special(token, vocabulary); });
  file.tokens = std::move(vocabulary.tokens);
  return file;
}

}  // namespace bertcl::text
