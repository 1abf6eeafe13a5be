// SPDX-License-Identifier: Apache-2.0
// Options of `bertcl quantize` by their names, for callers that have no command line.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quant/quantizer.hpp"

namespace bertcl::quant {

/// Name of an option, without "--" and with - or _ between words, and its value; "" for a flag.
using Setting = std::pair<std::string, std::string>;

/// Sets what the command sets by these options, in its order: a preset first, and --overrides.
/// Throws Error as the command does: an unknown name or value, an option without effect.
void apply(const std::vector<Setting>& settings, const JobOptions& job, Options& options);

/// The flags among these options, named with _ between words, each with the one that undoes it; ""
/// where it is only off by default.
std::map<std::string, std::string> flags();

}  // namespace bertcl::quant
