// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for what is quantized, and how.
#pragma once
#include <string>

#include "quant/quantizer.hpp"
#include "support/cli_forward.hpp"

namespace bertcl::quant {

/// Adds them to the command. A preset is applied before every other option, wherever it stands on
/// the command line. `options` must live as long as the command.
void add_quantizer_options(CLI::App& command, Options& options);

/// A scheme as the options name it: "u8", "s8", "u8-symmetric", "s8-asymmetric".
std::string scheme_text(Scheme scheme);

}  // namespace bertcl::quant
