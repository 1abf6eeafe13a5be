// SPDX-License-Identifier: Apache-2.0
// Reading of tokenizers, and what all of them can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "text/added_token_files.hpp"
#include "text/base/data_file.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/unicode.hpp"
#include "text/pipeline/normalizers.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_files.hpp"
#include "text/tokenizer_json.hpp"

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

/// Of a vocab.json, beside which merges.txt lies; "model" may also be a token.
bool is_vocabulary(const nlohmann::json& document, const std::filesystem::path& path) {
  const auto model = document.find("model");
  return (model == document.end() || model->is_number()) &&
         is_present(path.parent_path() / "merges.txt");
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerOptions& options)
    : mask_tokens_(with_usual_masks(options.mask_tokens)),
      truncates_left_(options.cut_left.value_or(false)),
      cleans_up_(options.cleans_up),
      options_(options),
      basic_(options) {}

Tokenizer Tokenizer::of_pipeline(nlohmann::json document, const std::string& origin,
                                 const TokenizerOptions& options) {
  std::shared_ptr<const Pipeline> pipeline = make_pipeline(std::move(document), origin, options);
  Tokenizer tokenizer(pipeline->bert.value_or(TokenizerOptions{}));
  tokenizer.is_bert_ = pipeline->bert.has_value();
  tokenizer.has_spans_ = true;
  tokenizer.special_ = pipeline->post_processor.special;
  tokenizer.special_.token_types &= options.token_types;
  tokenizer.longest_ = pipeline->longest;
  tokenizer.truncates_left_ = pipeline->truncates_left;
  tokenizer.cleans_up_ = options.cleans_up && (pipeline->word_pieces || pipeline->unknown_as_text);
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
    if (is_vocabulary(document, path)) document = document_of_merges(std::move(document), path);
    return of_pipeline(std::move(document), origin, options);
  }
  check_word_pieces(path);
  std::vector<std::string> tokens;
  each_line(content, [&](std::string_view line, std::size_t) { tokens.emplace_back(strip(line)); });
  Tokenizer plain = from_tokens(std::move(tokens), options, origin);
  if (!may_add_tokens(path)) return plain;
  nlohmann::json document = document_of_vocabulary(plain.pipeline_->vocabulary.tokens(), options);
  if (!add_tokens_beside(path, document)) return plain;
  return of_pipeline(std::move(document), origin, options);
}

std::string Tokenizer::json_of(const std::filesystem::path& path, const TokenizerOptions& options) {
  check_regular_file(path);
  std::string content = read_file(path);
  const auto dumped = [&](const nlohmann::json& document) {
    try {
      return document.dump();
    } catch (const nlohmann::json::exception&) {
      fail("{}: a token, or a line of merges.txt, is not UTF-8; {}", path.string(), kSaveAsJson);
    }
  };
  if (is_sentence_piece(content)) return dumped(document_of_sentence_piece(content, path));
  if (begins_as_object(content)) {
    nlohmann::json document = parse_json(content, path.string());
    if (!is_vocabulary(document, path))
      return overrule(document, options) ? document.dump() : content;
    return dumped(document_of_merges(std::move(document), path));
  }
  const Tokenizer read = from_file(path, options);
  nlohmann::json document = document_of_vocabulary(read.pipeline_->vocabulary.tokens(), options);
  add_tokens_beside(path, document);
  return dumped(document);
}

Tokenizer Tokenizer::from_tokens(std::vector<std::string> tokens, TokenizerOptions options,
                                 const std::string& origin) {
  const auto pipeline = std::make_shared<Pipeline>();
  for (std::string& token : tokens) pipeline->vocabulary.append(std::move(token));
  std::string missing;
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    if (pipeline->vocabulary.find(special)) continue;
    missing += missing.empty() ? special : fmt::format(", {}", special);
  }
  if (!missing.empty()) {
    fail(
        "{}: the vocabulary of {} tokens lacks {}; a BERT vocabulary has [PAD], [UNK], "
        "[CLS] and [SEP], and a vocab.txt one token per line",
        origin, tokens.size(), missing);
  }
  const int longest = std::max(options.max_word_chars.value_or(100), 0);
  pipeline->model =
      wordpiece_model(pipeline->vocabulary, {.longest_word = static_cast<std::size_t>(longest)});
  pipeline->word_pieces = pipeline->marks_pieces = true;
  Tokenizer tokenizer(options);
  tokenizer.pipeline_ = pipeline;
  const std::int32_t begin = tokenizer.token_id("[CLS]"), end = tokenizer.token_id("[SEP]");
  tokenizer.special_ = {{begin}, {end}, {begin}, {end}, {end}, options.token_types};
  return tokenizer;
}

std::string Tokenizer::lower_cased(std::string_view text) const {
  Parts parts(text);
  pipeline_->added.find(parts, false);
  lower_case(parts);
  return std::move(parts.text);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (has_spans_) return pipeline_->encode_ids(text);
  std::vector<std::int32_t> ids;
  for (const std::string& word : basic_.tokenize(text))
    for (const Token& token : pipeline_->tokens_of(word)) ids.push_back(token.id);
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_word(std::string_view word) const {
  if (!pipeline_->byte_level || word.starts_with(' ')) return encode(word);
  return encode(' ' + std::string(word));
}

bool Tokenizer::marks_pieces() const { return pipeline_->marks_pieces; }

Spelling Tokenizer::spelling() const {
  if (pipeline_->word_pieces) return Spelling::word_pieces;
  return pipeline_->byte_level ? Spelling::bytes : Spelling::pieces;
}

std::string Tokenizer::decode(std::vector<std::string> tokens) const {
  if (pipeline_->decoders) return text::decode(*pipeline_->decoders, std::move(tokens));
  return text::decode(decoders_of(spelling()), std::move(tokens));
}

std::vector<std::int32_t> Tokenizer::marked_special() const {
  std::vector<std::int32_t> ids;
  for (const AddedToken& token : pipeline_->added.tokens())
    if (token.special) ids.push_back(token.id);
  return ids;
}

Encoding Tokenizer::encode_with_spans(std::string_view text) const {
  if (has_spans_) return pipeline_->encode(text);
  throw Error("a tokenizer made from vocab.txt has no token offsets; use a tokenizer.json");
}

Tokenizer Tokenizer::as_tokenizer_json() const {
  if (has_spans_) return *this;
  return of_pipeline(document_of_vocabulary(pipeline_->vocabulary.tokens(), options_), "vocab.txt",
                     options_);
}

std::optional<std::int32_t> Tokenizer::find_id(std::string_view token) const {
  return pipeline_->id_of(token);
}

std::int32_t Tokenizer::token_id(std::string_view token) const {
  if (const auto id = find_id(token)) return *id;
  fail("token \"{}\" is not in the vocabulary of {} tokens", token, vocabulary_size());
}

const std::string& Tokenizer::token(std::int32_t id) const {
  if (const std::string* token = pipeline_->token_of(id)) return *token;
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
  if (const auto id = pipeline_->model->unknown()) return id;
  const auto id = pipeline_->id_of("[UNK]");
  return id ? id : pipeline_->id_of("<unk>");
}

std::size_t Tokenizer::vocabulary_size() const { return pipeline_->size(); }

std::size_t Tokenizer::model_vocabulary_size() const { return pipeline_->vocabulary.size(); }

std::map<std::int32_t, std::string> Tokenizer::tokens_from(std::int64_t first) const {
  std::map<std::int32_t, std::string> tokens;
  const auto end = static_cast<std::int64_t>(vocabulary_size());
  for (std::int64_t id = std::max<std::int64_t>(0, first); id < end; ++id) {
    const auto narrow = static_cast<std::int32_t>(id);
    if (const std::string* token = pipeline_->token_of(narrow)) tokens.emplace(narrow, *token);
  }
  return tokens;
}

}  // namespace bertcl::text
