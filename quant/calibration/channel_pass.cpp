// SPDX-License-Identifier: Apache-2.0
// Statistics of the channels of some tensors over the calibration samples.
#include "quant/calibration/channel_pass.hpp"

namespace bertcl::quant {

std::map<std::string, ChannelStatistics> channel_statistics(const Workspace& workspace,
                                                            const std::set<std::string>& tensors,
                                                            std::span<const Sample> samples,
                                                            const PassProgress& progress) {
  const auto observers = observe_samples(
      workspace, tensors, samples,
      [](opencl::Context& context, const std::string& tensor) {
        return ChannelObserver(context, tensor);
      },
      progress);
  std::map<std::string, ChannelStatistics> all;
  for (const auto& [tensor, observer] : observers) all.emplace(tensor, observer.statistics());
  return all;
}

}  // namespace bertcl::quant
