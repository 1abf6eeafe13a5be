// SPDX-License-Identifier: Apache-2.0
// Options of the commands that make vectors of texts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "bertcl/error.hpp"
#include "runtime/pooling.hpp"
#include "tasks/embedding_files.hpp"

namespace CLI {
class App;
}

namespace bertcl::tools {

struct PoolingOptions {
  std::string pooling;  ///< of runtime::Pooling, or "model"; empty: as the model's files tell
  std::optional<bool> normalize;
  std::optional<std::int64_t> dimensions;
};
void add_pooling_options(CLI::App& command, PoolingOptions& options);

/// What the options say, and the files where these leave it open.
runtime::Pooling pooling_of(const PoolingOptions& options, const tasks::EmbeddingFiles& files);

/// What `work` returns; the message of its Error names --pooling where the model has hidden states
/// and no mode was known.
template <class Work>
auto naming_pooling(const runtime::Pooling& pooling, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!pooling.kind.empty() ||
        message.find("no output is a vector [batch, hidden];") == message.npos)
      throw;
    throw Error(
        message +
        "; no modules.json beside the model names a pooling mode: copy modules.json and "
        "1_Pooling of sentence-transformers there, or use --pooling mean, cls, max or last");
  }
}

}  // namespace bertcl::tools
