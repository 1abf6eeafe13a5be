// SPDX-License-Identifier: Apache-2.0
// Makes a float model whose activations are easier to quantize.
#include "quant/transforms/smooth_model.hpp"

#include <set>

#include "quant/calibration/channel_pass.hpp"

namespace bertcl::quant {
std::vector<Smoothing> smooth_model(Model& model, const GraphIndex& index, Constants& constants,
                                    const Placement& placement, const SmoothOptions& options,
                                    const Workspace& workspace, std::span<const Sample> samples,
                                    const PassProgress& progress) {
  const auto targets = smooth_targets(index, constants, placement);
  std::set<std::string> tensors;
  for (const SmoothTarget& t : targets) tensors.insert(t.tensor);
  if (targets.empty()) return {};
  const auto statistics = channel_statistics(workspace, tensors, samples, progress);
  std::vector<Smoothing> chosen;
  for (const SmoothTarget& t : targets) {
    const auto x = statistics.find(t.tensor);
    if (x == statistics.end()) {  // it depends on no input; calibration says so later
      chosen.emplace_back().tensor = t.tensor;
      continue;
    }
    std::vector<ir::Tensor> values;
    for (const std::string& w : t.weights) values.push_back(constants.value(w));
    std::vector<WeightView> weights;
    for (const ir::Tensor& v : values) weights.push_back({v.as<float>(), v.shape()[1]});
    chosen.push_back(choose_factors(t.tensor, x->second, weights, options));
  }
  apply_smoothing(model, targets, chosen);
  std::erase_if(chosen, [](const Smoothing& s) { return s.factors.empty(); });
  return chosen;
}

}  // namespace bertcl::quant
