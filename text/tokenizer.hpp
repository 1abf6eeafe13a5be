// SPDX-License-Identifier: Apache-2.0
// BERT's tokenizer: text -> words (BasicTokenizer) -> word pieces and their ids
// (WordPieceTokenizer).
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bertcl::text {

/// Unset options follow the vocabulary's file, else the default.
struct TokenizerOptions {
  std::optional<bool> lower_case = std::nullopt;     ///< by default true: uncased vocabulary
  std::optional<bool> strip_accents = std::nullopt;  ///< by default where lower-cased
  std::optional<bool> split_cjk = std::nullopt;      ///< by default true: ideographs are words
  /// A longer word is [UNK]; by default 200, as in google-research/bert.
  std::optional<int> max_word_chars = std::nullopt;
};

/// Splits UTF-8 text into words, as `BasicTokenizer` of google-research/bert tokenization.py:
/// drops control characters, sets CJK ideographs apart, splits at white space, lower-cases and
/// drops accents (as the options say), and makes each punctuation character a word.
/// Ill-formed UTF-8 is dropped. Immutable: any number of threads may use one object.
class BasicTokenizer {
 public:
  explicit BasicTokenizer(const TokenizerOptions& options = {});

  std::vector<std::string> tokenize(std::string_view text) const;

 private:
  void add_words(std::string_view chunk, std::vector<std::string>& words) const;

  bool lower_case_, strip_accents_, split_cjk_;
};

/// BasicTokenizer, then greedy longest match against a vocabulary (`WordpieceTokenizer` of the
/// same file). Special tokens inside the text are not protected: "[CLS]" gives "[", "cl", "##s",
/// "]". Immutable: any number of threads may use one object.
class WordPieceTokenizer {
 public:
  /// Reads a vocabulary: a vocab.txt of one token per line, its id the line number from 0, where
  /// the last newline may be missing; or a tokenizer.json, as parse_tokenizer_json() does. Throws
  /// Error if the file cannot be read, is of another tokenizer, or lacks [PAD], [UNK], [CLS] or
  /// [SEP].
  static WordPieceTokenizer from_file(const std::filesystem::path& path,
                                      TokenizerOptions options = {});

  /// The same from tokens in the order of their ids; `origin` names them in error messages.
  static WordPieceTokenizer from_tokens(std::vector<std::string> tokens,
                                        TokenizerOptions options = {},
                                        const std::string& origin = "vocabulary");

  /// Word pieces of a text, continuations with "##".
  std::vector<std::string> tokenize(std::string_view text) const;

  /// Ids of the word pieces of a text: ids(tokenize(text)) without the strings between.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// Id of each token. Throws Error on a token that is not in the vocabulary.
  std::vector<std::int32_t> ids(std::span<const std::string> tokens) const;

  /// Id of one token, e.g. "[CLS]". Throws Error if it is not in the vocabulary.
  std::int32_t token_id(std::string_view token) const;

  /// Token of an id. Throws Error if the id is outside the vocabulary.
  const std::string& token(std::int32_t id) const;

  std::size_t vocabulary_size() const { return tokens_.size(); }
  const BasicTokenizer& basic() const { return basic_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Ids = std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>>;

  explicit WordPieceTokenizer(const TokenizerOptions& options);
  void add_pieces(std::string_view word, std::vector<std::int32_t>& ids) const;

  BasicTokenizer basic_;
  std::size_t max_word_chars_;
  std::vector<std::string> tokens_;  // by id
  Ids ids_;                          // every token as it stands
  Ids continuation_ids_;             // tokens that begin with "##", without it
  std::size_t longest_ = 0;          // bytes of the longest token
  std::int32_t unknown_ = 0;         // id of [UNK]
};

}  // namespace bertcl::text
