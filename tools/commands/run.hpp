// SPDX-License-Identifier: Apache-2.0
// What `bertcl run` does with tensors and with texts.
#pragma once
#include <optional>
#include <string>

#include "tools/options/model_options.hpp"
#include "tools/options/vocabulary_options.hpp"

namespace bertcl::tools {

struct RunOptions : ModelOptions {
  std::string model, inputs, texts, outputs;
  VocabularyOptions vocabulary;
  std::optional<int> max_length;
  bool force = false;
};

/// Texts in, JSON lines or arrays out.
int run_texts(const RunOptions& options);

}  // namespace bertcl::tools
