// SPDX-License-Identifier: Apache-2.0
// The options of `bertcl quantize` for scale tables.
#pragma once
#include "quant/quantizer.hpp"
#include "support/cli_forward.hpp"

namespace bertcl::tools {

void add_table_options(CLI::App& command, quant::JobOptions& options);

}  // namespace bertcl::tools
