// SPDX-License-Identifier: Apache-2.0
// A tokenizer as a tokenizer.json describes it: added tokens, normalizers, pre-tokenizers, a model.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pipeline/added_tokens.hpp"
#include "text/pipeline/decoders.hpp"
#include "text/pipeline/encoding.hpp"
#include "text/pipeline/model.hpp"
#include "text/pipeline/parts.hpp"
#include "text/pipeline/post_processor.hpp"
#include "text/pipeline/tokenizer_options.hpp"

namespace bertcl::text {

/// Immutable once it is built: any number of threads may use one object.
class Pipeline {
 public:
  Pipeline();
  Pipeline(const Pipeline&) = delete;  // the model refers to the vocabulary
  Pipeline& operator=(const Pipeline&) = delete;

  Vocabulary vocabulary;            ///< of the model
  Stage normalizer, pre_tokenizer;  ///< empty: the file has none
  std::unique_ptr<Model> model;
  AddedTokens added;
  PostProcessor post_processor;
  std::optional<Decoders> decoders;  ///< none: the file has none that are supported
  bool word_pieces = false;          ///< the model is WordPiece
  bool marks_pieces = false;         ///< tokens that continue a word have a prefix: "##"
  bool unknown_as_text = false;      ///< what Unigram lacks keeps its text as a token
  bool byte_level = false;           ///< a space before a word tells that it begins there
  std::optional<int> longest;        ///< tokens of a sequence (`truncation`)
  bool truncates_left = false;       ///< longer ones lose their first tokens
  /// What BasicTokenizer does, where these parts are all that BERT's have.
  std::optional<TokenizerOptions> bert;

  Encoding encode(std::string_view text) const;
  /// The ids alone.
  std::vector<std::int32_t> encode_ids(std::string_view text) const;
  /// Tokens of a word, which is not empty, by the model alone; until the thread's next call.
  const std::vector<Token>& tokens_of(std::string_view word) const;

  /// An id or a token of the vocabulary and the added tokens. None where there is no such token.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  const std::string* token_of(std::int32_t id) const;
  /// One more than the largest id.
  std::size_t size() const;

 private:
  Parts split(std::string_view text) const;
  std::string_view characters_of(std::int32_t id, std::string_view text) const;

  std::uint64_t serial_;  // tells the words in a thread's cache apart from those of others
};

}  // namespace bertcl::text
