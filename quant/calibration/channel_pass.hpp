// SPDX-License-Identifier: Apache-2.0
// Statistics of the channels of some tensors over the calibration samples.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>

#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/sample_pass.hpp"

namespace bertcl::quant {

/// By tensor, of those that the samples reach. Throws Error naming one that held NaN or infinite
/// values, or if there are no samples.
std::map<std::string, ChannelStatistics> channel_statistics(const Workspace& workspace,
                                                            const std::set<std::string>& tensors,
                                                            std::span<const Sample> samples,
                                                            const PassProgress& progress = {});

}  // namespace bertcl::quant
