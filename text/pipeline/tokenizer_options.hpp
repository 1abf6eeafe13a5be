// SPDX-License-Identifier: Apache-2.0
// Options of tokenizers.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace bertcl::text {

/// Unset options follow the vocabulary's file, else the default.
struct TokenizerOptions {
  std::optional<bool> lower_case = std::nullopt;     ///< by default true: uncased vocabulary
  std::optional<bool> strip_accents = std::nullopt;  ///< by default where lower-cased
  std::optional<bool> split_cjk = std::nullopt;      ///< by default true: ideographs are words
  /// Texts that are too long lose their first tokens; by default as a tokenizer.json says, or not.
  std::optional<bool> cut_left = std::nullopt;
  /// A longer word is [UNK]; by default 100, as in Hugging Face's transformers.
  std::optional<int> max_word_chars = std::nullopt;
  bool token_types = true;   ///< false: the second of two texts has token types of 0, as the first
  bool cleans_up = false;    ///< texts made of tokens lose spaces before English punctuation
  bool adds_to_file = true;  ///< a tokenizer.json without a post_processor may get that of BERT
  /// Names that the token that hides another one may have; [MASK] and <mask> come after them.
  std::vector<std::string> mask_tokens = {};
};

}  // namespace bertcl::text
