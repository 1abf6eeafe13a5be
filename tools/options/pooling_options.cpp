// SPDX-License-Identifier: Apache-2.0
// Options of the commands that make vectors of texts.
#include "tools/options/pooling_options.hpp"

#include <CLI/CLI.hpp>

#include "support/option_checks.hpp"
#include "tasks/model_files/dense_module.hpp"

namespace bertcl::tools {

void add_pooling_options(CLI::App& command, PoolingOptions& options) {
  one_of(
      command.add_option("--pooling", options.pooling,
                         "How token vectors are pooled: mean, max, the first (cls) or the last; "
                         "model: an output of the model that is pooled already; by default as in "
                         "modules.json and 1_Pooling/config.json beside the model, else model"),
      {"mean", "cls", "max", "last", "model"});
  add_switch(
      command, "--normalize,--no-normalize{false}",
      [&options](bool yes) { options.normalize = yes; },
      "Scale vectors to length 1, or do not; by default as in modules.json");
  positive(command, "--dimensions", options.dimensions,
           "Keep the first N dimensions (Matryoshka), before vectors are normalized");
}

runtime::Pooling pooling_of(const PoolingOptions& options, const tasks::EmbeddingFiles& files) {
  runtime::Pooling pooling;
  pooling.kind = options.pooling.empty() ? files.pooling : options.pooling;
  if (pooling.kind == "model") pooling.kind.clear();
  pooling.or_own = options.pooling.empty();
  pooling.dense = tasks::dense_modules(files.dense);
  pooling.normalize = options.normalize.value_or(files.normalize);
  pooling.columns = options.dimensions.value_or(files.dimensions.value_or(0));
  return pooling;
}

}  // namespace bertcl::tools
