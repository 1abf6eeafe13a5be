// SPDX-License-Identifier: Apache-2.0
// Where a model's tokenizer lies, and what the files beside it say.
#pragma once
#include <array>
#include <filesystem>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {

/// What Tokenizer::from_file() reads, as it is called beside a model. A tokenizer.json says all of
/// a tokenizer, the others a part.
inline constexpr std::array kVocabularyFiles = {"tokenizer.json", "vocab.txt", "vocab.json",
                                                "sentencepiece.bpe.model", "spiece.model"};

/// The tokenizer.json, else the vocab.txt, else another file that Tokenizer::from_file() reads,
/// beside (companion_file()) a model; empty if there is none.
std::filesystem::path vocabulary_beside(const std::filesystem::path& model);

/// The same beside the first of `models` that has one. `advice` ends the Error if there
/// is none.
std::filesystem::path find_vocabulary(const std::vector<std::filesystem::path>& models,
                                      const std::string& advice);

/// The options, of which tokenizer_config.json beside the vocabulary says what they leave open:
/// "do_lower_case", "strip_accents", "tokenize_chinese_chars", "truncation_side" and
/// "clean_up_tokenization_spaces"; of these the first three not of a tokenizer.json with a class
/// that is_generic(). Without has_token_types() all token types are 0. Throws Error if one is of
/// another type, or the file is damaged.
TokenizerOptions with_config(const std::filesystem::path& vocabulary,
                             TokenizerOptions options = {});

/// Whether "token_type_ids" is among the "model_input_names" of a tokenizer_config.json or, where
/// it has none, of its class: TokenizersBackend of transformers 5 has no token types.
bool has_token_types(const JsonNode& tokenizer_config);

/// Reads a vocabulary, by with_config(). What is open then is as a tokenizer.json itself says; else
/// letters are lower-cased and accents dropped. Its mask token is the first that is in the
/// vocabulary of "mask_token" in tokenizer_config.json, special_tokens_map.json and config.json,
/// [MASK] and <mask>. Throws Error if one of these files is damaged.
Tokenizer load_with_config(const std::filesystem::path& vocabulary, TokenizerOptions options = {});

}  // namespace bertcl::text
