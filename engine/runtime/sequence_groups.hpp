// SPDX-License-Identifier: Apache-2.0
// Any sequences in as many runs as the model needs for them.
#pragma once
#include <functional>

#include "plan/plan.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

using RunSequences = std::function<Tensors(const Sequences&)>;

/// The outputs of `run` for all of the sequences, which it gets in one call where it can. Where the
/// file fixes the batch, it gets that many at a time, the last one repeated to make them full;
/// where `pads` and the model cannot tell padding, those of one length. Throws Error where an
/// output of several runs does not have rows of sequences or tokens, or their shapes differ in
/// other axes.
Tensors run_in_groups(const plan::Plan& plan, const Sequences& sequences, bool pads,
                      const RunSequences& run);

}  // namespace bertcl::runtime
