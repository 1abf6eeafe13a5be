// SPDX-License-Identifier: Apache-2.0
// Options of the commands that make vectors of texts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/pooling.hpp"
#include "support/cli_forward.hpp"
#include "tasks/model_files/embedding_files.hpp"

namespace bertcl::tools {

struct PoolingOptions {
  std::string pooling;  ///< of runtime::Pooling, or "model"; empty: as the model's files tell
  std::optional<bool> normalize;
  std::optional<std::int64_t> dimensions;
};
void add_pooling_options(CLI::App& command, PoolingOptions& options);

/// What the options say, and the files where these leave it open.
runtime::Pooling pooling_of(const PoolingOptions& options, const tasks::EmbeddingFiles& files);

}  // namespace bertcl::tools
