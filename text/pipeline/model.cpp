// SPDX-License-Identifier: Apache-2.0
// Vocabularies, and the reading of models.
#include "text/pipeline/model.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace bertcl::text {

void Vocabulary::add(const std::string& token, const JsonNode& node) {
  const std::int64_t id = node.integer();
  if (id < 0 || id >= kMaxId) node.fail("is the id {}; expected one from 0 to {}", id, kMaxId - 1);
  const auto at = static_cast<std::size_t>(id);
  if (at >= tokens_.size()) {
    tokens_.resize(at + 1);
    taken_.resize(at + 1);
  }
  if (taken_[at] && tokens_[at] != token)
    node.fail("is the id {}, which \"{}\" already has", id, tokens_[at]);
  const auto known = ids_.emplace(token, static_cast<std::int32_t>(id)).first;
  if (known->second != id)
    node.fail("is the id {}, but \"{}\" already has the id {}", id, token, known->second);
  tokens_[at] = token;
  taken_[at] = true;
}

void Vocabulary::append(std::string token) {
  ids_[token] = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
  taken_.push_back(true);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

void read_vocabulary(const JsonNode& node, Vocabulary& vocabulary) {
  node.at("vocab").each_member(
      [&](const std::string& token, const JsonNode& id) { vocabulary.add(token, id); });
}

std::string text_or(const JsonNode& node, const char* key, std::string default_value) {
  const auto found = node.find(key);
  return found ? found->string() : std::move(default_value);
}

/// A token that must be in the vocabulary.
void require_token(const JsonNode& node, const char* key, const std::string& token,
                   const Vocabulary& vocabulary) {
  if (!vocabulary.find(token))
    node.fail("has the {} \"{}\", which its vocabulary lacks", key, token);
}

std::unique_ptr<Model> read_wordpiece(const JsonNode& node, Vocabulary& vocabulary) {
  read_vocabulary(node, vocabulary);
  WordPieceOptions options;
  options.unknown = text_or(node, "unk_token", options.unknown);
  options.prefix = text_or(node, "continuing_subword_prefix", options.prefix);
  if (const auto longest = node.find("max_input_chars_per_word")) {
    const std::int64_t characters = longest->integer();
    if (characters < 1 || characters > 1'000'000)
      longest->fail(fmt::format("is {}; expected a number from 1 to 1,000,000", characters));
    options.longest_word = static_cast<std::size_t>(characters);
  }
  require_token(node, "unk_token", options.unknown, vocabulary);
  return wordpiece_model(vocabulary, std::move(options));
}

std::pair<std::string, std::string> read_merge(const JsonNode& node) {
  if (node.value().is_array()) return {node.element(0).string(), node.element(1).string()};
  const std::string& text = node.string();
  const std::size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos)
    node.fail("is \"{}\"; expected two tokens with a space between", text);
  return {text.substr(0, space), text.substr(space + 1)};
}

std::unique_ptr<Model> read_bpe(const JsonNode& node, Vocabulary& vocabulary) {
  read_vocabulary(node, vocabulary);
  if (const auto dropout = node.find("dropout"); dropout && dropout->number() != 0)
    dropout->fail("is set, which makes tokens random; only 0 is supported");
  BpeOptions options;
  if (const auto unknown = node.find("unk_token")) {
    options.unknown = unknown->string();
    require_token(node, "unk_token", *options.unknown, vocabulary);
  }
  options.prefix = text_or(node, "continuing_subword_prefix", "");
  options.suffix = text_or(node, "end_of_word_suffix", "");
  options.fuse_unknown = node.flag("fuse_unk", false);
  options.byte_fallback = node.flag("byte_fallback", false);
  options.ignore_merges = node.flag("ignore_merges", false);
  const JsonNode merges = node.at("merges");
  options.merges.reserve(merges.value().size());
  merges.each([&](const JsonNode& merge) { options.merges.push_back(read_merge(merge)); });
  return bpe_model(vocabulary, options, merges.path());
}

std::unique_ptr<Model> read_unigram(const JsonNode& node, Vocabulary& vocabulary) {
  UnigramOptions options;
  const JsonNode vocab = node.at("vocab");
  options.scores.reserve(vocab.value().size());
  vocab.each([&](const JsonNode& entry) {
    vocabulary.append(entry.element(0).string());
    options.scores.push_back(entry.element(1).number());
  });
  if (const auto unknown = node.find("unk_id")) {
    const std::int64_t id = unknown->integer();
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size())
      unknown->fail(fmt::format("is {}; the vocabulary has {} tokens", id, vocabulary.size()));
    options.unknown = static_cast<std::int32_t>(id);
  }
  options.byte_fallback = node.flag("byte_fallback", false);
  return unigram_model(vocabulary, std::move(options));
}

}  // namespace

std::string kind_of_model(const JsonNode& node) {
  return text_or(node, "type", node.find("merges") ? "BPE" : "WordPiece");
}

std::unique_ptr<Model> read_model(const JsonNode& node, Vocabulary& vocabulary) {
  const std::string type = kind_of_model(node);
  if (type == "WordPiece") return read_wordpiece(node, vocabulary);
  if (type == "BPE") return read_bpe(node, vocabulary);
  if (type == "Unigram") return read_unigram(node, vocabulary);
  node.fail("has unsupported type '{}' (supported: BPE, Unigram, WordPiece)", type);
}

}  // namespace bertcl::text
