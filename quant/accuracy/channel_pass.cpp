// SPDX-License-Identifier: Apache-2.0
// Statistics of the channels of some tensors over the calibration samples.
#include "quant/accuracy/channel_pass.hpp"

namespace bertcl::quant {

std::map<std::string, ChannelStatistics> channel_statistics(const std::filesystem::path& model,
                                                            const std::string& device,
                                                            const std::set<std::string>& tensors,
                                                            std::span<const Sample> samples,
                                                            const PassProgress& progress) {
  std::map<std::string, ChannelObserver> observers;
  std::map<std::string, ChannelStatistics> all;
  run_samples(
      model, device, tensors, samples,
      [&](opencl::Context& context, const std::string& tensor, const opencl::Buffer& values,
          std::int64_t rows, std::int64_t channels) {
        observers.try_emplace(tensor, context, tensor)
            .first->second.observe(values, rows, channels);
      },
      [&] {
        for (const auto& [tensor, observer] : observers) all.emplace(tensor, observer.statistics());
      },
      progress);
  return all;
}

}  // namespace bertcl::quant
