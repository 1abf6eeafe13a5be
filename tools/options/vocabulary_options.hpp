// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace CLI {
class App;
}

namespace bertcl::tools {

struct VocabularyOptions {
  std::string vocabulary;  ///< empty: the one beside a model
  std::optional<bool> lower_case, strip_accents;
};
void add_vocabulary_options(CLI::App& command, VocabularyOptions& options);

/// The tokenizer of the first of `models` that has a vocab.txt, else a tokenizer.json or another
/// file that Tokenizer::from_file() reads, if the options name none. What they leave open is read from tokenizer_config.json beside the vocabulary
/// ("do_lower_case", "strip_accents", "tokenize_chinese_chars"), else from a tokenizer.json itself;
/// else letters are lower-cased and accents dropped.
/// Throws Error if there is no vocabulary, or if a file gives a value of another type.
text::WordPieceTokenizer load_tokenizer(const VocabularyOptions& options,
                                        const std::vector<std::filesystem::path>& models);

}  // namespace bertcl::tools
