// SPDX-License-Identifier: Apache-2.0
// What a model gives for each sequence, or each token, as numbers.
#pragma once
#include <vector>

#include "runtime/session.hpp"

namespace bertcl::runtime {

/// Runs the sequences; the values of the outputs side by side: [tokens, ..] if `by_token`, else
/// [sequences, ..]. Throws Error where an output is not one of these.
std::vector<float> row_values(Session& session, const Sequences& sequences,
                              const OutputNames& outputs, bool by_token);

}  // namespace bertcl::runtime
