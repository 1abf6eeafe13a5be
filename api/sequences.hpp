// SPDX-License-Identifier: Apache-2.0
// Packed sequences as the padded tensors of an ONNX graph, and padded results as packed ones. The
// engine drops the padding again before it computes.
#pragma once
#include <cstdint>
#include <vector>

#include "bertcl/sequences.hpp"
#include "plan/plan.hpp"
#include "runtime/session.hpp"

namespace bertcl {

/// Throws Error if the offsets do not ascend from 0 to the number of ids, a sequence is empty, or
/// the segments are not as many as the ids.
void check(const Sequences& sequences);

/// Ids, mask, segments and positions [batch, longest] for the inputs of the model. Throws Error for
/// an input of another meaning, or of fixed extents that the sequences do not have.
runtime::Tensors padded(const Sequences& sequences, const std::vector<plan::Port>& inputs);

/// Outputs whose first axes are those of the ids lose their padding: [batch, seq, ...] becomes
/// [tokens, ...].
runtime::Tensors packed(runtime::Tensors outputs, const Sequences& sequences,
                        const std::vector<plan::Port>& inputs,
                        const std::vector<plan::Port>& outputs_of_model);

}  // namespace bertcl
