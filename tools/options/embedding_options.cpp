// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tokenize texts and make vectors of them.
#include "tools/options/embedding_options.hpp"

#include <CLI/CLI.hpp>

#include "support/option_checks.hpp"
#include "tools/options/file_options.hpp"

namespace bertcl::tools {

void add_model_and_texts(CLI::App& command, std::string& model, std::string& texts) {
  texts = "-";
  model_file(command.add_option("MODEL", model,
                                "ONNX model whose output is hidden states or text vectors"))
      ->required();
  input_file(command.add_option("TEXTS", texts, "Texts; - is standard input, the default"))
      ->type_name("");
}

void add_embedding_options(CLI::App& command, EmbeddingOptions& options) {
  positive(command, "--batch-tokens", options.batch_tokens, "Maximum tokens per batch");
  add_max_length_option(command, options.max_length);
  add_vocabulary_options(command, options.vocabulary);
}

}  // namespace bertcl::tools
