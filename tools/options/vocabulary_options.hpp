// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/cli_forward.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

struct VocabularyOptions {
  std::string vocabulary;  ///< empty: the one beside a model
  std::optional<bool> lower_case, strip_accents;
};
void add_vocabulary_options(CLI::App& command, VocabularyOptions& options);

/// --max-seq-length for `what`, by default as TextModel::max_length() has it.
CLI::Option* add_max_length_option(CLI::App& command, std::optional<int>& max_length,
                                   const std::string& what = "a text");

/// The tokenizer that the options name, else that of the first of `models` with a tokenizer.json, a
/// vocab.txt or another file of Tokenizer::from_file() beside it. Case and accents follow the
/// options, tokenizer_config.json beside the vocabulary, or the tokenizer.json; else letters are
/// lower-cased and accents dropped. A vocab.txt is read as BERT's tokenizer.json
/// (Tokenizer::as_tokenizer_json()).
/// Throws Error if there is no vocabulary, or if a file has a value of another type.
text::Tokenizer load_tokenizer(const VocabularyOptions& options,
                               const std::vector<std::filesystem::path>& models);

/// The same for the questions and contexts of SQuAD: a vocab.txt as google-research/bert reads it,
/// whose run_squad.py the published scores come from.
text::Tokenizer load_squad_tokenizer(const VocabularyOptions& options,
                                     const std::vector<std::filesystem::path>& models);

}  // namespace bertcl::tools
