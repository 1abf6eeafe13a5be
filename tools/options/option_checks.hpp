// SPDX-License-Identifier: Apache-2.0
// Checks of option values with readable help, the quantizer's as well as the commands' own.
#pragma once
#include "quant/settings/option_checks.hpp"

namespace bertcl::tools {

using quant::add_list, quant::add_switch, quant::any_number, quant::in_range, quant::not_negative,
    quant::number_list, quant::one_of, quant::OptionGroup, quant::positive;

}  // namespace bertcl::tools
