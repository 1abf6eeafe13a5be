// SPDX-License-Identifier: Apache-2.0
// Words -> word pieces by greedy longest match; reading of vocabularies.
#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"
#include "text/tokenizer.hpp"
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

/// A SentencePiece model is a protobuf message that begins with its pieces.
bool is_sentence_piece(std::string_view content) {
  return content.starts_with("\n") && content.find('\0') != std::string_view::npos;
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(const TokenizerOptions& options)
    : basic_(options),
      max_word_chars_(static_cast<std::size_t>(std::max(options.max_word_chars.value_or(200), 0))) {
}

WordPieceTokenizer WordPieceTokenizer::from_file(const std::filesystem::path& path,
                                                 TokenizerOptions options) {
  const std::string content = read_file(path);
  if (is_sentence_piece(content))
    throw Error(
        fmt::format("{}: this is a SentencePiece model; {}", path.string(), kWordPieceOnly));
  if (begins_as_object(content)) {
    TokenizerFile file = parse_tokenizer_json(content, path.string());
    const auto fill = [](auto& option, const auto& of_file) {
      if (!option) option = of_file;
    };
    fill(options.lower_case, file.options.lower_case);
    fill(options.strip_accents, file.options.strip_accents);
    fill(options.split_cjk, file.options.split_cjk);
    fill(options.max_word_chars, file.options.max_word_chars);
    return from_tokens(std::move(file.tokens), options, path.string());
  }
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    tokens.emplace_back(strip(std::string_view(content).substr(begin, end - begin)));
    begin = end + 1;
  }
  return from_tokens(std::move(tokens), options, path.string());
}

WordPieceTokenizer WordPieceTokenizer::from_tokens(std::vector<std::string> tokens,
                                                   TokenizerOptions options,
                                                   const std::string& origin) {
  WordPieceTokenizer tokenizer(options);
  tokenizer.tokens_ = std::move(tokens);
  for (std::size_t i = 0; i < tokenizer.tokens_.size(); ++i) {
    const std::string& token = tokenizer.tokens_[i];
    const auto id = static_cast<std::int32_t>(i);
    tokenizer.ids_[token] = id;
    if (token.starts_with("##")) tokenizer.continuation_ids_[token.substr(2)] = id;
    tokenizer.longest_ = std::max(tokenizer.longest_, token.size());
  }
  std::string missing;
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    if (tokenizer.ids_.contains(std::string_view(special))) continue;
    missing += missing.empty() ? special : fmt::format(", {}", special);
  }
  if (!missing.empty()) {
    throw Error(
        fmt::format("{}: the vocabulary of {} tokens lacks {}; a BERT vocabulary has [PAD], [UNK], "
                    "[CLS] and [SEP], and a vocab.txt one token per line",
                    origin, tokenizer.tokens_.size(), missing));
  }
  tokenizer.unknown_ = tokenizer.token_id("[UNK]");
  return tokenizer;
}

std::vector<std::int32_t> WordPieceTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> result;
  for (const std::string& word : basic_.tokenize(text)) add_pieces(word, result);
  return result;
}

std::vector<std::string> WordPieceTokenizer::tokenize(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const std::int32_t id : encode(text)) pieces.push_back(token(id));
  return pieces;
}

void WordPieceTokenizer::add_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t before = ids.size();
  const auto fail = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (word.size() > max_word_chars_ && count_code_points(word) > max_word_chars_) return fail();

  for (std::size_t begin = 0; begin < word.size();) {
    const Ids& table = begin == 0 ? ids_ : continuation_ids_;
    std::size_t length = std::min(word.size() - begin, longest_);
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

std::vector<std::int32_t> WordPieceTokenizer::ids(std::span<const std::string> tokens) const {
  std::vector<std::int32_t> result;
  result.reserve(tokens.size());
  for (const std::string& token : tokens) result.push_back(token_id(token));
  return result;
}

std::int32_t WordPieceTokenizer::token_id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) {
    throw Error(
        fmt::format("token \"{}\" is not in the vocabulary of {} tokens", token, tokens_.size()));
  }
  return found->second;
}

const std::string& WordPieceTokenizer::token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) {
    throw Error(
        fmt::format("token id {} is outside the vocabulary of {} tokens", id, tokens_.size()));
  }
  return tokens_[static_cast<std::size_t>(id)];
}

}  // namespace bertcl::text
