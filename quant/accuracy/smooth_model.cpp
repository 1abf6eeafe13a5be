// SPDX-License-Identifier: Apache-2.0
// Writes a float model whose activations are easier to quantize.
#include "quant/accuracy/smooth_model.hpp"

#include <map>
#include <set>
#include <utility>

namespace bertcl::quant {
namespace {

using AllStatistics = std::map<std::string, ChannelStatistics>;

AllStatistics gather(const std::filesystem::path& model, const std::string& device,
                     const std::set<std::string>& tensors, std::span<const Sample> samples,
                     const PassProgress& progress) {
  std::map<std::string, ChannelObserver> observers;
  AllStatistics all;
  run_samples(
      model, device, tensors, samples,
      [&](opencl::Context& context, const std::string& tensor, const opencl::Buffer& values,
          std::int64_t rows, std::int64_t channels) {
        observers.try_emplace(tensor, context, tensor).first->second.observe(values, rows, channels);
      },
      [&] {
        for (const auto& [tensor, observer] : observers)
          all.emplace(tensor, observer.statistics());
      },
      progress);
  return all;
}

}  // namespace

std::vector<Smoothing> smooth_model(const std::filesystem::path& model,
                                    const std::filesystem::path& output, const std::string& device,
                                    const PlacementOptions& placement, const SmoothOptions& options,
                                    std::span<const Sample> samples, const PassProgress& progress) {
  Model edited = Model::load(model);
  std::vector<SmoothTarget> targets;
  std::vector<Smoothing> chosen;
  {
    const GraphIndex index(edited.graph());
    Constants constants(edited, index);
    targets = smooth_targets(index, constants, place(index, constants, placement));
    std::set<std::string> tensors;
    for (const SmoothTarget& t : targets) tensors.insert(t.tensor);
    if (targets.empty()) return {};
    const AllStatistics statistics = gather(model, device, tensors, samples, progress);
    for (const SmoothTarget& t : targets) {
      std::vector<ir::Tensor> values;
      for (const std::string& w : t.weights) values.push_back(constants.value(w));
      std::vector<WeightView> weights;
      for (const ir::Tensor& v : values) weights.push_back({v.as<float>(), v.shape()[1]});
      chosen.push_back(choose_factors(t.tensor, statistics.at(t.tensor), weights, options));
    }
  }
  apply_smoothing(edited, targets, chosen);
  std::erase_if(chosen, [](const Smoothing& s) { return s.factors.empty(); });
  if (!chosen.empty()) edited.save(output);
  return chosen;
}

}  // namespace bertcl::quant
