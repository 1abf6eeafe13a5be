// SPDX-License-Identifier: Apache-2.0
// The activation that sentence-transformers writes beside a cross-encoder.
#pragma once
#include <filesystem>

namespace bertcl::tools {

/// Without an activation sentence-transformers takes the sigmoid of one logit; models that were
/// trained on logits (ms-marco) name torch's Identity.
/// Throws Error that names another activation.
bool applies_sigmoid(const std::filesystem::path& model);

}  // namespace bertcl::tools
