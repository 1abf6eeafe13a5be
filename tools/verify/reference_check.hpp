// SPDX-License-Identifier: Apache-2.0
// A model by its chosen kernels against the same model by the reference kernels.
#pragma once
#include <vector>

#include "runtime/session.hpp"
#include "tools/verify/golden.hpp"

namespace bertcl::tools {

/// The options of a session that takes the reference variant of every kernel, one launch a step,
/// and computes padding.
runtime::SessionOptions reference_options(runtime::SessionOptions options);

struct ReferenceCheck {
  int tokens = 0;  ///< of the sequence
  Difference difference;
};

/// Runs synthetic sequences of several lengths, up to the model's limit, in one batch, and compares
/// each with what `reference` gives for it alone. Throws Error if the model does not read token
/// ids.
std::vector<ReferenceCheck> compare_with_reference(runtime::Session& session,
                                                   runtime::Session& reference,
                                                   const Tolerance& tolerance);

}  // namespace bertcl::tools
