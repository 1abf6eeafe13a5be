// SPDX-License-Identifier: Apache-2.0
// The files of sentence-transformers beside a model, which say how texts become vectors or scores.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasks/task.hpp"

namespace bertcl::tasks {

/// What messages say of EmbeddingFiles::pools_prompt, after the name of the file or the model.
inline constexpr const char* kExcludesPrompt =
    "excludes prompt tokens from pooling (include_prompt), which is not supported";

struct EmbeddingFiles {
  std::filesystem::path folder;  ///< of modules.json; empty: there is none
  bool scores_pairs = false;     ///< of a CrossEncoder: modules make no vectors
  std::string pooling;           ///< "mean", "max", "cls" or "last"; "" where nothing tells
  bool pools_prompt = true;      ///< false: the tokens of a prompt are left out of the pooling
  std::vector<std::filesystem::path> dense;  ///< folders of the Dense modules after the pooling
  bool normalize = false;
  std::optional<int> max_length;           ///< tokens with [CLS] and [SEP]
  std::optional<std::int64_t> dimensions;  ///< that vectors are cut to
  bool lower_case = false;                 ///< whatever the tokenizer does
  std::map<std::string, std::string> prompts;
  std::string default_prompt_name;
  std::string default_prompt;  ///< the text before each text
  std::string similarity;      ///< "cosine", ..; "" where nothing tells

  /// The prompts "query", and "document", "passage" or "corpus", as encode_query() and
  /// encode_document() of sentence-transformers take them; else the default one.
  RetrievalPrompts prompts_by_role() const;
  /// The same. Throws Error if their tokens are to be left out of the pooling.
  RetrievalPrompts retrieval_prompts() const;
};

/// Throws Error with the names if there is no prompt of this one.
const std::string& prompt_named(const std::map<std::string, std::string>& prompts,
                                const std::string& name);

/// Reads modules.json, 1_Pooling/config.json, sentence_bert_config.json or an older name of it,
/// config_sentence_transformers.json and what declared_length() reads, those in the folder of
/// `model` or, for FOLDER/onnx/model.onnx, in FOLDER. Nothing is told where there are none. Throws
/// Error that names the file for a module or a pooling that is not supported.
EmbeddingFiles read_embedding_files(const std::filesystem::path& model);

}  // namespace bertcl::tasks
