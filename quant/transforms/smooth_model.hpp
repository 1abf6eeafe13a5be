// SPDX-License-Identifier: Apache-2.0
// Makes a float model whose activations are easier to quantize.
#pragma once
#include <span>
#include <vector>

#include "quant/calibration/sample_pass.hpp"
#include "quant/placement/placement.hpp"
#include "quant/transforms/smooth.hpp"

namespace bertcl::quant {

/// Gathers statistics of the channels of all smooth_targets() of `placement` by running the model
/// of the workspace, of which `model` is a copy, chooses factors and applies them to `model`; its
/// function stays the same. Returns what was chosen, by tensor; if no tensor gains, `model` is as
/// it was and it is empty. `index` and `constants` are not valid afterwards.
std::vector<Smoothing> smooth_model(Model& model, const GraphIndex& index, Constants& constants,
                                    const Placement& placement, const SmoothOptions& options,
                                    const Workspace& workspace, std::span<const Sample> samples,
                                    const PassProgress& progress = {});

}  // namespace bertcl::quant
