// SPDX-License-Identifier: Apache-2.0
// Rounds the weights of a placement again, with GPTQ.
#pragma once
#include <set>
#include <span>
#include <string>

#include "quant/calibration/sample_pass.hpp"
#include "quant/encoding/encode.hpp"

namespace bertcl::quant {

/// Replaces the integers of weights in `encodings` by those of gptq_round(), with Gram matrices of
/// the inputs of MatMuls over the samples. Scales and zero points stay. Takes weights [K][N] of one
/// MatMul each, in column scales or one; others keep the nearest integers. Gram matrices of some
/// inputs at a time are held, about 576 MiB; the samples run once for each such group.
/// Returns the weights that were rounded again.
std::set<std::string> round_weights(Encodings& encodings, const Placement& placement,
                                    const GraphIndex& index, Constants& constants,
                                    const Workspace& workspace, std::span<const Sample> samples,
                                    const PassProgress& progress = {});

}  // namespace bertcl::quant
