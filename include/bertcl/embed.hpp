// SPDX-License-Identifier: Apache-2.0
// Vectors of texts, as sentence-transformers makes them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"
#include "bertcl/tensor.hpp"

namespace bertcl {

/// What the files of sentence-transformers beside a model say of its use.
struct EmbeddingSettings {
  Pooling pooling;              ///< for SessionOptions; its kind is "" where nothing is said
  std::int64_t max_length = 0;  ///< tokens with [CLS] and [SEP]; 0: nothing is said
  std::map<std::string, std::string> prompts;  ///< texts to begin with, by name
  std::string default_prompt_name;
  std::string default_prompt;  ///< the text by that name
  /// False: a prompt's tokens are left out of the pooling, which bertcl does not do.
  bool pools_prompt = true;
  bool scores_pairs = false;  ///< of a CrossEncoder: the prompts are for the first text of a pair
  bool lower_case = false;    ///< texts are lower-cased, whatever the tokenizer does
  std::string similarity;  ///< "cosine", "dot", "euclidean", "manhattan"; "" where nothing is said
};

/// Reads modules.json, 1_Pooling/config.json, sentence_bert_config.json or an older name of it, and
/// config_sentence_transformers.json beside a model, or for FOLDER/onnx/model.onnx in FOLDER; a
/// folder stands for the model in it, as for Session::load. Nothing of "", a model in memory.
/// Throws Error where there is no such model, or that names the file for a module or a pooling that
/// is not supported.
BERTCL_API EmbeddingSettings read_embedding_settings(const std::filesystem::path& model);

struct EmbedOptions {
  std::string prompt = {};      ///< before each text
  std::int64_t max_length = 0;  ///< tokens; longer texts are truncated; 0: what the model takes
  int batch_tokens = 4096;      ///< of a batch at most
  bool lower_case = false;      ///< lower-case the texts: EmbeddingSettings::lower_case
};

/// A vector for each text, f32 [texts, dimensions] in their order, of a session with
/// SessionOptions::pooling. Texts of similar length run together; the vector of a text does not
/// depend on those beside it. That of a text without tokens, of a tokenizer that adds none, is 0.
/// Throws Error where the session has another output.
BERTCL_API Tensor embed(const Session& session, const Tokenizer& tokenizer,
                        const std::vector<std::string>& texts, const EmbedOptions& options = {});

}  // namespace bertcl
