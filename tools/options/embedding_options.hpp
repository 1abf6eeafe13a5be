// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize texts and make vectors of them.
#pragma once
#include <optional>
#include <string>

#include "tools/options/pooling_options.hpp"
#include "tools/options/vocabulary_options.hpp"

namespace bertcl::tools {

struct EmbeddingOptions {
  PoolingOptions pooled;
  VocabularyOptions vocabulary;
  std::optional<int> max_length;  ///< tokens; none: as the model's files tell
  int batch_tokens = 4096;        ///< of a batch at most
};

/// MODEL and TEXTS, which is standard input by default.
void add_model_and_texts(CLI::App& command, std::string& model, std::string& texts);

/// --batch-tokens, --max-seq-length and add_vocabulary_options(). add_pooling_options() is apart,
/// as options of a command itself may come between.
void add_embedding_options(CLI::App& command, EmbeddingOptions& options);

}  // namespace bertcl::tools
