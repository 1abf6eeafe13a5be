// SPDX-License-Identifier: Apache-2.0
// The models of a tokenizer.json: they make tokens of words.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/base/json_node.hpp"

namespace bertcl::text {

/// Tokens by id, and ids by token.
class Vocabulary {
 public:
  /// More tokens than any vocabulary has (LaBSE: 501,153): an id above is damage.
  static constexpr std::int64_t kMaxId = 1 << 22;

  /// A repeated token, or a second token of an id, fails at the node of the id.
  void add(const std::string& token, const JsonNode& id);
  /// The next id; what is repeated is found by its last id.
  void append(std::string token);

  std::optional<std::int32_t> find(std::string_view token) const;
  const std::string& at(std::int32_t id) const { return tokens_[id]; }
  std::size_t size() const { return tokens_.size(); }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::vector<std::string> tokens_;  // an id that no token has is ""
  std::vector<bool> taken_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
};

/// A token, and the bytes of the word that it stands for.
struct Token {
  std::int32_t id;
  std::uint32_t begin, end;
};

/// Immutable: any number of threads may use one object.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;
  /// Adds the tokens of a word, which is not empty.
  virtual void tokenize(std::string_view word, std::vector<Token>& tokens) const = 0;
  /// Id of the token for what the vocabulary lacks.
  virtual std::optional<std::int32_t> unknown() const = 0;
};

/// Greedy longest match (google-research/bert tokenization.py).
struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string prefix = "##";       ///< of tokens that continue a word
  std::size_t longest_word = 100;  ///< in characters; a longer one is unknown
};
std::unique_ptr<Model> wordpiece_model(const Vocabulary& vocabulary, WordPieceOptions options);

/// Byte-pair encoding (https://aclanthology.org/P16-1162).
struct BpeOptions {
  std::vector<std::pair<std::string, std::string>> merges;  ///< first those that are made first
  std::optional<std::string> unknown;
  std::string prefix, suffix;  ///< of symbols after the first one; of the last one
  bool fuse_unknown = false;   ///< neighbouring unknown characters are one token
  bool byte_fallback = false;  ///< unknown characters become tokens "<0x0A>"
  bool ignore_merges = false;  ///< a word that is a token is not taken apart
};
/// Throws Error with `place` if a merge needs a token that is not in the vocabulary.
std::unique_ptr<Model> bpe_model(const Vocabulary& vocabulary, const BpeOptions& options,
                                 const std::string& place);

/// The most probable tokens of a unigram model (https://aclanthology.org/P18-1007).
struct UnigramOptions {
  std::vector<double> scores;  ///< logarithms of probabilities, by id
  std::optional<std::int32_t> unknown;
  bool byte_fallback = false;
};
std::unique_ptr<Model> unigram_model(const Vocabulary& vocabulary, UnigramOptions options);

/// "WordPiece", "BPE", "Unigram" or another, as a node "model" says it; old files have no type.
std::string kind_of_model(const JsonNode& node);

/// Reads a node "model": its vocabulary into `vocabulary`, which must outlive the model.
std::unique_ptr<Model> read_model(const JsonNode& node, Vocabulary& vocabulary);

}  // namespace bertcl::text
