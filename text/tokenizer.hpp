// SPDX-License-Identifier: Apache-2.0
// Tokenizers: text -> ids of tokens. BERT's of a vocab.txt is text -> words (BasicTokenizer) ->
// word pieces; others are pipelines, as a tokenizer.json describes them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pipeline/encoding.hpp"
#include "text/pipeline/search_error.hpp"
#include "text/pipeline/special_tokens.hpp"
#include "text/pipeline/tokenizer_options.hpp"

namespace bertcl::text {

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

class Pipeline;

/// Makes tokens of texts. Immutable: any number of threads may use one object.
/// A vocab.txt is read as google-research/bert does it, for SQuAD: special tokens inside the text
/// are not protected, "[CLS]" gives "[", "cl", "##s", "]". All else uses its as_tokenizer_json().
/// With the other files they are found as Hugging Face's tokenizers does it.
class Tokenizer {
 public:
  /// Reads a tokenizer:
  /// - a vocab.txt of BERT: one token per line, its id the line number from 0, where the last
  ///   newline may be missing; a tokenizer_config.json beside it names no class but BERT's;
  /// - a tokenizer.json, as make_pipeline() does;
  /// - a vocab.json with merges.txt beside it (RoBERTa);
  /// - a SentencePiece model of type unigram (XLM-RoBERTa).
  /// A vocab.txt to which files beside it add tokens (add_tokens_beside()) is read as its
  /// as_tokenizer_json() with these.
  /// Throws Error if the file cannot be read or is none of these, if it needs something that is not
  /// supported, or if a vocab.txt lacks [PAD], [UNK], [CLS] or [SEP].
  static Tokenizer from_file(const std::filesystem::path& path, TokenizerOptions options = {});

  /// The tokenizer.json that says the same as this file and the options: itself, where they change
  /// nothing, or what as_tokenizer_json() reads.
  /// Throws Error as from_file(), but does not look at what a tokenizer.json needs.
  static std::string json_of(const std::filesystem::path& path,
                             const TokenizerOptions& options = {});

  /// BERT's from tokens in the order of their ids; `origin` names them in error messages.
  static Tokenizer from_tokens(std::vector<std::string> tokens, TokenizerOptions options = {},
                               const std::string& origin = "vocabulary");

  /// The text in lower case, each character by itself, as a normalizer Lowercase before all others
  /// would have it: added tokens in it that are not normalized stay as they are.
  std::string lower_cased(std::string_view text) const;

  /// Ids of the tokens of a text.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// The same of a word of a text that is given in words: with a space before it, if the tokenizer
  /// tells the beginning of a word by that.
  std::vector<std::int32_t> encode_word(std::string_view word) const;

  /// Whether it tells where tokens are: all but that of a vocab.txt do; see as_tokenizer_json().
  bool has_spans() const { return has_spans_; }

  /// Ids, and where they are in the text. Throws Error without has_spans().
  Encoding encode_with_spans(std::string_view text) const;

  /// This tokenizer; that of a vocab.txt as a tokenizer.json would have it (transformers'
  /// BertTokenizerFast), which tells where tokens are and finds special tokens inside the text:
  /// "[MASK]" is one token. A capital sigma that ends a word becomes U+03C3, not U+03C2, and
  /// unassigned code points are [UNK], not dropped.
  Tokenizer as_tokenizer_json() const;

  /// Id of one token, e.g. "[CLS]"; none if it is not in the vocabulary.
  std::optional<std::int32_t> find_id(std::string_view token) const;
  /// The same. Throws Error if it is not in the vocabulary.
  std::int32_t token_id(std::string_view token) const;

  /// Token of an id. Throws Error if the id is outside the vocabulary.
  const std::string& token(std::int32_t id) const;

  /// Id of the token that hides another one: the first that is in the vocabulary of
  /// TokenizerOptions::mask_tokens, [MASK] and <mask>. Throws Error that names them if there is
  /// none.
  std::int32_t mask_id() const;

  /// Id of the token for what the vocabulary lacks: that of the model, else [UNK] or <unk>.
  std::optional<std::int32_t> unknown_id() const;

  /// One more than the largest id.
  std::size_t vocabulary_size() const;
  /// The same without the tokens that were added to those of the model.
  std::size_t model_vocabulary_size() const;
  /// Tokens of ids from `first` on, with their ids.
  std::map<std::int32_t, std::string> tokens_from(std::int64_t first) const;

  /// What goes around texts.
  const SpecialTokens& special() const { return special_; }

  /// Most tokens of a sequence with its special tokens, if the file says so.
  std::optional<int> longest() const { return longest_; }

  /// Whether a text that is too long loses its first tokens, not its last.
  bool truncates_left() const { return truncates_left_; }

  Spelling spelling() const;
  /// Whether tokens that continue a word have a prefix such as "##".
  bool marks_pieces() const;

  /// The text that tokens spell, by the decoder of their file, else by spelling().
  std::string decode(std::vector<std::string> tokens) const;
  /// Whether the texts that transformers makes of its tokens lose spaces before English punctuation
  /// (cleaned_up()): where its configuration says so, except for BPE.
  bool cleans_up() const { return cleans_up_; }
  /// Ids of the added tokens that their file marks as special.
  std::vector<std::int32_t> marked_special() const;

  /// Whether it splits words as BERT does: basic(), then word pieces with "##".
  bool is_bert() const { return is_bert_; }
  /// How BERT splits words. Requires is_bert().
  const BasicTokenizer& basic() const { return basic_; }

 private:
  explicit Tokenizer(const TokenizerOptions& options);
  static Tokenizer of_pipeline(nlohmann::json document, const std::string& origin,
                               const TokenizerOptions& options);

  std::shared_ptr<const Pipeline> pipeline_;  // of a vocab.txt: vocabulary and model alone
  SpecialTokens special_;
  std::vector<std::string> mask_tokens_;
  std::optional<int> longest_;
  bool is_bert_ = true, has_spans_ = false, truncates_left_ = false, cleans_up_ = false;

  TokenizerOptions options_;
  BasicTokenizer basic_;
};

}  // namespace bertcl::text
