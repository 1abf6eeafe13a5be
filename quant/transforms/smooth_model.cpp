// SPDX-License-Identifier: Apache-2.0
// Makes a float model whose activations are easier to quantize.
#include "quant/transforms/smooth_model.hpp"

#include <mutex>
#include <set>

#include "quant/calibration/parallel.hpp"

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
  std::vector<Smoothing> chosen(targets.size());
  std::mutex constants_mutex;
  in_parallel(targets.size(), [&](std::size_t i) {
    const SmoothTarget& t = targets[i];
    chosen[i].tensor = t.tensor;
    const auto x = statistics.find(t.tensor);
    if (x == statistics.end()) return;  // it depends on no input; calibration says so later
    std::vector<ir::Tensor> values;
    std::unique_lock lock(constants_mutex);
    for (const std::string& w : t.weights) values.push_back(constants.value(w));
    lock.unlock();
    std::vector<WeightView> weights;
    for (const ir::Tensor& v : values) weights.push_back({v.as<float>(), v.shape()[1]});
    chosen[i] = choose_factors(t.tensor, x->second, weights, options);
  });
  apply_smoothing(model, targets, chosen);
  std::erase_if(chosen, [](const Smoothing& s) { return s.factors.empty(); });
  return chosen;
}

}  // namespace bertcl::quant
