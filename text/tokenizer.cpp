// SPDX-License-Identifier: Apache-2.0
// Reading of tokenizers, and word pieces by greedy longest match for those of a vocab.txt.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_files.hpp"
#include "text/tokenizer_json.hpp"
#include "text/unicode.hpp"

namespace bertcl::text {
namespace {

/// Python's str.strip().
std::string_view strip(std::string_view line) {
  std::size_t begin = line.size();
  std::size_t end = line.size();
  bool seen = false;
  for (std::size_t position = 0; position < line.size();) {
    const std::size_t start = position;
    if (is_space(next_code_point(line, position))) continue;
    if (!seen) begin = start;
    seen = true;
    end = position;
  }
  return line.substr(begin, end - begin);
}

/// Each of `names` once, then the usual ones.
std::vector<std::string> with_usual_masks(std::vector<std::string> names) {
  names.insert(names.end(), {"[MASK]", "<mask>"});
  std::vector<std::string> result;
  for (std::string& name : names)
    if (std::ranges::find(result, name) == result.end()) result.push_back(std::move(name));
  return result;
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerOptions& options)
    : mask_tokens_(with_usual_masks(options.mask_tokens)),
      truncates_left_(options.cut_left.value_or(false)),
      options_(options),
      basic_(options),
      max_word_chars_(static_cast<std::size_t>(std::max(options.max_word_chars.value_or(100), 0))) {
}

Tokenizer Tokenizer::of_pipeline(nlohmann::json document, const std::string& origin,
                                 const TokenizerOptions& options) {
  std::shared_ptr<const Pipeline> pipeline = make_pipeline(std::move(document), origin, options);
  Tokenizer tokenizer(pipeline->bert.value_or(TokenizerOptions{}));
  tokenizer.is_bert_ = pipeline->bert.has_value();
  tokenizer.special_ = pipeline->post_processor.special;
  tokenizer.longest_ = pipeline->longest;
  tokenizer.truncates_left_ = pipeline->truncates_left;
  tokenizer.mask_tokens_ = with_usual_masks(options.mask_tokens);
  tokenizer.pipeline_ = std::move(pipeline);
  return tokenizer;
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path, TokenizerOptions options) {
  check_regular_file(path);
  const std::string content = read_file(path);
  const std::string origin = path.string();
  if (is_sentence_piece(content))
    return of_pipeline(document_of_sentence_piece(content, path), origin, options);
  if (begins_as_object(content)) {
    nlohmann::json document = parse_json(content, origin);
    const auto model = document.find("model");  // "model" may also be a token of a vocab.json
    const bool is_vocabulary = model == document.end() || model->is_number();
    if (is_vocabulary && is_present(path.parent_path() / "merges.txt"))
      document = document_of_merges(std::move(document), path);
    return of_pipeline(std::move(document), origin, options);
  }
  check_word_pieces(path);
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    tokens.emplace_back(strip(std::string_view(content).substr(begin, end - begin)));
    begin = end + 1;
  }
  return from_tokens(std::move(tokens), options, origin);
}

Tokenizer Tokenizer::from_tokens(std::vector<std::string> tokens, TokenizerOptions options,
                                 const std::string& origin) {
  Tokenizer tokenizer(options);
  tokenizer.tokens_ = std::move(tokens);
  for (std::size_t i = 0; i < tokenizer.tokens_.size(); ++i) {
    const std::string& token = tokenizer.tokens_[i];
    const auto id = static_cast<std::int32_t>(i);
    tokenizer.ids_[token] = id;
    if (token.starts_with("##")) tokenizer.continuation_ids_[token.substr(2)] = id;
    tokenizer.longest_token_ = std::max(tokenizer.longest_token_, token.size());
  }
  std::string missing;
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    if (tokenizer.ids_.contains(std::string_view(special))) continue;
    missing += missing.empty() ? special : fmt::format(", {}", special);
  }
  if (!missing.empty()) {
    fail(
        "{}: the vocabulary of {} tokens lacks {}; a BERT vocabulary has [PAD], [UNK], "
        "[CLS] and [SEP], and a vocab.txt one token per line",
        origin, tokenizer.tokens_.size(), missing);
  }
  tokenizer.unknown_ = tokenizer.token_id("[UNK]");
  const std::int32_t begin = tokenizer.token_id("[CLS]"), end = tokenizer.token_id("[SEP]");
  tokenizer.special_ = {{begin}, {end}, {begin}, {end}, {end}, true};
  return tokenizer;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (pipeline_) return pipeline_->encode_ids(text);
  std::vector<std::int32_t> result;
  for (const std::string& word : basic_.tokenize(text)) add_pieces(word, result);
  return result;
}

std::vector<std::int32_t> Tokenizer::encode_word(std::string_view word) const {
  if (!pipeline_ || !pipeline_->byte_level || word.starts_with(' ')) return encode(word);
  return encode(' ' + std::string(word));
}

Spelling Tokenizer::spelling() const {
  if (!pipeline_ || pipeline_->word_pieces) return Spelling::word_pieces;
  return pipeline_->byte_level ? Spelling::bytes : Spelling::pieces;
}

std::string Tokenizer::decode(std::vector<std::string> tokens) const {
  if (pipeline_ && pipeline_->decoders)
    return text::decode(*pipeline_->decoders, std::move(tokens));
  return text::decode(decoders_of(spelling()), std::move(tokens));
}

std::vector<std::int32_t> Tokenizer::marked_special() const {
  std::vector<std::int32_t> ids;
  if (pipeline_)
    for (const AddedToken& token : pipeline_->added.tokens())
      if (token.special) ids.push_back(token.id);
  return ids;
}

Encoding Tokenizer::encode_with_spans(std::string_view text) const {
  if (pipeline_) return pipeline_->encode(text);
  throw Error("a vocab.txt does not give token offsets; use a tokenizer.json");
}

Tokenizer Tokenizer::as_tokenizer_json() const {
  if (pipeline_) return *this;
  return of_pipeline(document_of_vocabulary(tokens_, options_), "vocab.txt", options_);
}

void Tokenizer::add_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t before = ids.size();
  const auto fail = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (word.size() > max_word_chars_ && count_code_points(word) > max_word_chars_) return fail();

  for (std::size_t begin = 0; begin < word.size();) {
    const Ids& table = begin == 0 ? ids_ : continuation_ids_;
    std::size_t length = std::min(word.size() - begin, longest_token_);
    for (; length > 0; --length) {
      const std::size_t end = begin + length;
      const bool inside_code_point =
          end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80;
      if (inside_code_point) continue;
      const auto found = table.find(word.substr(begin, length));
      if (found == table.end()) continue;
      ids.push_back(found->second);
      break;
    }
    if (length == 0) return fail();
    begin += length;
  }
}

std::optional<std::int32_t> Tokenizer::find_id(std::string_view token) const {
  if (pipeline_) return pipeline_->id_of(token);
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::int32_t Tokenizer::token_id(std::string_view token) const {
  if (const auto id = find_id(token)) return *id;
  fail("token \"{}\" is not in the vocabulary of {} tokens", token, vocabulary_size());
}

const std::string& Tokenizer::token(std::int32_t id) const {
  const std::string* token = nullptr;
  if (pipeline_) {
    token = pipeline_->token_of(id);
  } else if (id >= 0 && static_cast<std::size_t>(id) < tokens_.size()) {
    token = &tokens_[id];
  }
  if (token != nullptr) return *token;
  fail("token id {} is outside the vocabulary of {} tokens", id, vocabulary_size());
}

std::int32_t Tokenizer::mask_id() const {
  for (const std::string& name : mask_tokens_)
    if (const auto id = find_id(name)) return *id;
  fail(
      "the tokenizer has no mask token: none of \"{}\" is in its vocabulary; name it as mask_token "
      "in tokenizer_config.json, special_tokens_map.json or config.json",
      fmt::join(mask_tokens_, "\", \""));
}

std::optional<std::int32_t> Tokenizer::unknown_id() const {
  if (!pipeline_) return unknown_;
  if (const auto id = pipeline_->model->unknown()) return id;
  const auto id = pipeline_->id_of("[UNK]");
  return id ? id : pipeline_->id_of("<unk>");
}

std::size_t Tokenizer::vocabulary_size() const {
  return pipeline_ ? pipeline_->size() : tokens_.size();
}

std::size_t Tokenizer::model_vocabulary_size() const {
  return pipeline_ ? pipeline_->vocabulary.size() : tokens_.size();
}

std::map<std::int32_t, std::string> Tokenizer::tokens_from(std::int64_t first) const {
  std::map<std::int32_t, std::string> tokens;
  const auto end = static_cast<std::int64_t>(vocabulary_size());
  for (std::int64_t id = std::max<std::int64_t>(0, first); id < end; ++id) {
    const auto narrow = static_cast<std::int32_t>(id);
    if (!pipeline_)
      tokens.emplace(narrow, tokens_[static_cast<std::size_t>(id)]);
    else if (const std::string* token = pipeline_->token_of(narrow))
      tokens.emplace(narrow, *token);
  }
  return tokens;
}

}  // namespace bertcl::text
