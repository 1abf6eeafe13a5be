// SPDX-License-Identifier: Apache-2.0
// Token sequences without padding, and the tokenizer that makes them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/export.h"

namespace bertcl {

/// Sequences one after the other: sequence i is [offsets[i], offsets[i + 1]) of `ids`.
struct Sequences {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> token_type_ids = {};  ///< as long as `ids`; empty: all 0
  std::vector<std::int64_t> offsets = {0};

  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

/// Makes tokens of texts: WordPiece, BPE or Unigram. Immutable, so any number of threads may use
/// one.
class BERTCL_API Tokenizer {
 public:
  /// Reads a vocab.txt, a tokenizer.json, a vocab.json with merges.txt beside it, or a
  /// SentencePiece model of XLM-RoBERTa. Whether letters are lower-cased is as
  /// tokenizer_config.json beside it says; a vocab.txt without one is lower-cased. Special tokens
  /// in texts are found, except in SQuAD's questions and contexts by a vocab.txt. Throws Error if
  /// it cannot be read, needs something that is not supported, or is a vocab.txt that lacks [PAD],
  /// [UNK], [CLS] or [SEP].
  static Tokenizer load(const std::filesystem::path& vocabulary);
  /// The same of the file that lies beside a model, or beside that of a folder (Session::load): its
  /// vocab.txt, else one of the others.
  static Tokenizer load_beside(const std::filesystem::path& model);
  /// The tokenizer.json that says the same as a file that load() reads and those beside it: its
  /// content, unless they change it, or what other files are converted to. Throws Error as load(),
  /// but does not look at what a tokenizer.json needs. The side of truncation and token types are
  /// in ModelSettings.
  static std::string json_of(const std::filesystem::path& vocabulary);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of the tokens of a text in UTF-8, without special tokens.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// [CLS] text [SEP] for each, or what the tokenizer has for them. Longer ones are truncated to
  /// `max_length` tokens, at the end or where tokenizer_config.json says so at the beginning.
  Sequences encode_texts(const std::vector<std::string>& texts,
                         std::int64_t max_length = 512) const;
  /// [CLS] first [SEP] second [SEP] for each, with token types 0 and 1; RoBERTa: <s> first </s></s>
  /// second </s>, with types 0. If a pair is longer than `max_length` tokens, the longer text is
  /// truncated token by token.
  Sequences encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                         std::int64_t max_length = 512) const;
  /// Throws Error if the token is not in the vocabulary.
  std::int64_t id(std::string_view token) const;
  /// Throws Error if the id is outside the vocabulary.
  std::string token(std::int64_t id) const;
  std::int64_t size() const;
  /// One more than the largest id of the model's own vocabulary; size() also counts added tokens.
  std::int64_t model_size() const;

 private:
  friend struct TokenizerAccess;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bertcl
