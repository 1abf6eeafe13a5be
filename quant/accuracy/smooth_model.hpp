// SPDX-License-Identifier: Apache-2.0
// Writes a float model whose activations are easier to quantize.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "quant/accuracy/sample_pass.hpp"
#include "quant/accuracy/smooth.hpp"
#include "quant/placement.hpp"

namespace bertcl::quant {

/// Gathers statistics of the channels of all smooth_targets() of `placement`'s sites in `model`,
/// chooses factors and writes the model with them to `output`; the float function stays the same.
/// Returns what was chosen, by tensor; if no tensor gains, nothing is written and it is empty.
std::vector<Smoothing> smooth_model(const std::filesystem::path& model,
                                    const std::filesystem::path& output, const std::string& device,
                                    const PlacementOptions& placement, const SmoothOptions& options,
                                    std::span<const Sample> samples,
                                    const PassProgress& progress = {});

}  // namespace bertcl::quant
