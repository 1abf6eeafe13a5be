// SPDX-License-Identifier: Apache-2.0
// What `bertcl run` does with tensors and with texts.
#pragma once
#include <string>

#include "tools/models/texts_run.hpp"

namespace bertcl::tools {

struct RunOptions : TextsOptions {
  std::string inputs, outputs;
  bool force = false;
};

/// Texts in, JSON lines or arrays out.
int run_texts(const RunOptions& options);

}  // namespace bertcl::tools
