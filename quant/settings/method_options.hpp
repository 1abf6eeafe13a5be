// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for calibration methods.
#pragma once
#include <CLI/CLI.hpp>

#include "quant/quantizer.hpp"

namespace bertcl::quant {

/// Method, its settings and the calibration batch, read into `options`.
void add_method_options(CLI::App& command, Options& options);

}  // namespace bertcl::quant
