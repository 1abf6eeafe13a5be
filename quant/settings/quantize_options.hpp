// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for what is quantized, and how.
#pragma once
#include <string>
#include <vector>

#include "quant/quantizer.hpp"
#include "support/cli_forward.hpp"

namespace bertcl::quant {

/// Options that are refused by name where they have no effect; each is marked where it is added.
struct MarkedOptions {
  std::vector<const CLI::Option*> of_samples = {};      ///< without samples
  std::vector<const CLI::Option*> of_activations = {};  ///< where runs quantize activations
  std::vector<const CLI::Option*> of_adds = {};         ///< where no Add is quantized
};

/// Adds them to the command, and marks some. A preset is applied before every other option,
/// wherever it stands on the command line. `options` must live as long as the command.
void add_quantizer_options(CLI::App& command, Options& options, MarkedOptions& marked);

/// A scheme as the options name it: "u8", "i8", "u8-symmetric", "i8-asymmetric".
std::string scheme_text(Scheme scheme);

}  // namespace bertcl::quant
