// SPDX-License-Identifier: Apache-2.0
// The activation that sentence-transformers writes beside a cross-encoder.
#include "tools/models/activation.hpp"

#include <string>

#include "support/fail.hpp"
#include "tasks/model_files/model_config.hpp"

namespace bertcl::tools {

bool applies_sigmoid(const std::filesystem::path& model) {
  const std::string name = tasks::read_activation(model);
  if (name.empty() || name.ends_with("Sigmoid")) return true;
  if (name.ends_with("Identity")) return false;
  fail(
      "{}: unknown activation {} (choose from Sigmoid, Identity in config.json, or "
      "override it: rerank --sigmoid or --logits, classify --activation)",
      model.string(), name);
}

}  // namespace bertcl::tools
