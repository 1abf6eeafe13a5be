// SPDX-License-Identifier: Apache-2.0
// What a model's file, and those beside it, say of its use.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/session.hpp"

namespace bertcl {

struct ModelSettings {
  std::filesystem::path vocabulary;     ///< for Tokenizer::load(); empty: none is there
  std::optional<bool> truncates_left;   ///< none: as the vocabulary says, else no
  std::int64_t max_length = 0;          ///< tokens of the longest text; 0: no limit is known
  std::vector<std::string> classes;     ///< empty: none has a name, or the task has no classes
  std::optional<bool> multi_label;      ///< whether a text may be of several classes
  bool is_regression = false;           ///< outputs are numbers, not classes
  bool has_token_types = true;          ///< false: by tokenizer_config.json it has none
  bool cleans_up = false;               ///< texts made of tokens: clean_up_tokenization_spaces
  std::string activation;               ///< "torch.nn.modules.linear.Identity"; of pairs' scores
  std::vector<std::string> mask_names;  ///< of the token that hides another one, best first
  std::vector<std::string> pad_names;   ///< of the token that pads rows
  std::optional<std::int64_t> pad_id;   ///< where none of these is in the vocabulary
};

/// Reads the file that the session was loaded from: its metadata and its limit of tokens, and
/// config.json, tokenizer_config.json, special_tokens_map.json and
/// config_sentence_transformers.json beside it, or for FOLDER/onnx/model.onnx in FOLDER. Of a model
/// in memory only the former. Throws Error that names a file that is damaged.
BERTCL_API ModelSettings read_model_settings(const Session& session);

}  // namespace bertcl
