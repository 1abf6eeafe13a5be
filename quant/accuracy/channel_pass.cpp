// SPDX-License-Identifier: Apache-2.0
// Statistics of the channels of some tensors over the calibration samples.
#include "quant/accuracy/channel_pass.hpp"

namespace bertcl::quant {

std::map<std::string, ChannelStatistics> channel_statistics(const Workspace& workspace,
                                                            const std::set<std::string>& tensors,
                                                            std::span<const Sample> samples,
                                                            const PassProgress& progress) {
  std::map<std::string, ChannelStatistics> all;
  observe_samples(
      workspace, tensors, samples,
      [](opencl::Context& context, const std::string& tensor) {
        return ChannelObserver(context, tensor);
      },
      [&](const std::string& tensor, const ChannelObserver& observer) {
        all.emplace(tensor, observer.statistics());
      },
      progress);
  return all;
}

}  // namespace bertcl::quant
