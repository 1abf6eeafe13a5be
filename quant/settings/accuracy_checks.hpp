// SPDX-License-Identifier: Apache-2.0
// What accuracy measures need, and which of them the source of the ranges excludes.
#pragma once
#include <string>

#include "quant/quantizer.hpp"
#include "quant/settings/quantize_options.hpp"
#include "support/cli_forward.hpp"

namespace bertcl::quant {

/// Measures that were asked for by name; those that a preset sets give way, which the report says.
struct ExplicitOptions {
  bool smooth = false, gptq = false, bias_correction = false;
  std::string calibration = {};  ///< an option that only samples give an effect; "" for none
  std::string activations = {};  ///< one that needs Q/DQ of activations or their ranges
  std::string adds = {};         ///< one of the Adds
  bool axes = false, enabled_modules = false, recalibrated_weights = false;
};

/// What was asked for among the options of the command, of which some are marked.
ExplicitOptions explicit_options(const CLI::App& command, const MarkedOptions& marked,
                                 const Options& options);

/// Throws Error where what was asked for is combined with an option that leaves nothing of it.
void check_accuracy_options(const ExplicitOptions& asked, const Options& options,
                            const JobOptions& job);

}  // namespace bertcl::quant
