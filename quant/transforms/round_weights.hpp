// SPDX-License-Identifier: Apache-2.0
// Rounds the weights of a placement again, with GPTQ.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>

#include "quant/calibration/sample_pass.hpp"
#include "quant/encoding/encode.hpp"

namespace bertcl::quant {

struct RoundedWeights {
  std::set<std::string> rounded;
  std::map<std::string, std::string> nearest;  ///< weights that keep these integers, and why
};

/// Replaces the integers of weights in `encodings` by those of gptq_round(), with Gram matrices of
/// the inputs of MatMuls over the samples; those of all its MatMuls where several share a weight.
/// Scales and zero points stay. Takes weights [K][N] in column scales or one. Gram matrices of
/// about 576 MiB at a time are held; the samples run once for each such group.
RoundedWeights round_weights(Encodings& encodings, const Placement& placement,
                             const GraphIndex& index, Constants& constants,
                             const Workspace& workspace, std::span<const Sample> samples,
                             const PassProgress& progress = {});

}  // namespace bertcl::quant
