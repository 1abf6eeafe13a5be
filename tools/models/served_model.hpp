// SPDX-License-Identifier: Apache-2.0
// From a model's file, and what lies beside it, to a model that is served.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "opencl/context_future.hpp"
#include "serve/model.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/pooling_options.hpp"
#include "tools/options/vocabulary_options.hpp"

namespace bertcl::tools {

struct ServedModelOptions : ModelOptions {
  PoolingOptions pooled;
  VocabularyOptions vocabulary;
  std::optional<std::string> prompt;
  std::optional<int> max_length;
  bool beside_others = false;  ///< --pooling is then for models of hidden states alone
  int executors = 1;           ///< batches that run at a time
};

/// "NAME=PATH" or "PATH", whose name is that of its folder (or of the one above, for
/// FOLDER/onnx/model.onnx), or of the file if that is not model.onnx; in the cache of the Hugging
/// Face hub ORG/NAME, or ORG/NAME/STEM of such a file.
struct NamedModel {
  std::string name;
  std::filesystem::path path;
};
/// A name may have slashes if its path exists. Throws Error for an empty name, and where a file
/// that gives the name cannot be read.
NamedModel parse_named_model(const std::string& text);

/// Loads a model for what its head and the files beside it say: vectors where pooling is known,
/// scores, classes, answers. Throws Error that names the file.
serve::ModelSetup load_served_model(const NamedModel& model, const ServedModelOptions& options,
                                    const opencl::ContextFuture& device);

}  // namespace bertcl::tools
