// SPDX-License-Identifier: Apache-2.0
// Rounds the weights of a placement again, with GPTQ.
#include "quant/transforms/round_weights.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/parallel.hpp"
#include "quant/transforms/gptq.hpp"

namespace bertcl::quant {
namespace {

constexpr std::int64_t kGramBytes = 576 << 20;  // on the device; those of BERT-base take 513 MiB

/// Weights that one input is multiplied with.
struct Input {
  std::int64_t channels = 0;
  std::vector<std::string> weights;
};

bool fits(const Encoding& e) {
  const auto& shape = e.constant.values.shape();
  return shape.size() == 2 && (e.constant.axis == 1 || e.constant.scales.size() == 1);
}

std::map<std::string, Input> inputs_of_weights(const Encodings& encodings,
                                               const Placement& placement,
                                               const GraphIndex& index) {
  std::map<std::string, int> readers;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands)
      if (operand.role == Role::weight) ++readers[operand.tensor];
  std::map<std::string, Input> inputs;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands) {
      if (operand.role != Role::weight || readers[operand.tensor] > 1) continue;
      const auto& node = index.node(site.node);
      const Encoding& e = encodings.at({operand.tensor, Role::weight});
      if (!is_op(node, "MatMul") || operand.input != 1 || !fits(e)) continue;
      Input& input = inputs[node.input(0)];
      input.channels = e.constant.values.shape()[0];
      input.weights.push_back(operand.tensor);
    }
  return inputs;
}

std::vector<std::int32_t> integers_of(const ir::Tensor& values) {
  const auto wide = values.converted(ir::DType::i32);
  return {wide.as<std::int32_t>().begin(), wide.as<std::int32_t>().end()};
}

void round_again(Encoding& e, const ir::Tensor& weight, const GramFactor& gram) {
  // The nearest integers span what this way of quantizing allows, also where it is less than 8 bit.
  const auto nearest = integers_of(e.constant.values);
  const auto [lowest, highest] = std::minmax_element(nearest.begin(), nearest.end());
  const auto rounded = gptq_round(weight.as<float>(), gram, e.constant.scales,
                                  e.constant.zero_points, *lowest, *highest);
  e.constant.values = ir::Tensor::of<std::int32_t>(e.constant.values.shape(), rounded)
                          .converted(e.constant.values.dtype());
}

}  // namespace

std::set<std::string> round_weights(Encodings& encodings, const Placement& placement,
                                    const GraphIndex& index, Constants& constants,
                                    const Workspace& workspace, std::span<const Sample> samples,
                                    const PassProgress& progress) {
  const auto inputs = inputs_of_weights(encodings, placement, index);
  std::set<std::string> rounded;
  for (auto next = inputs.begin(); next != inputs.end();) {
    std::set<std::string> tensors;
    std::int64_t bytes = 0;
    for (; next != inputs.end(); ++next) {
      const std::int64_t more = next->second.channels * next->second.channels * 4;
      if (!tensors.empty() && bytes + more > kGramBytes) break;
      bytes += more;
      tensors.insert(next->first);
    }
    const auto observers = observe_samples(
        workspace, tensors, samples,
        [](opencl::Context& context, const std::string& tensor) {
          return GramObserver(context, tensor);
        },
        progress);
    std::vector<std::string> reached;
    for (const auto& [tensor, observer] : observers) reached.push_back(tensor);
    std::mutex one_at_a_time;  // for the queue and the constants
    in_parallel(reached.size(), [&](std::size_t i) {
      std::unique_lock lock(one_at_a_time);
      const std::vector<std::string>& weights = inputs.at(reached[i]).weights;
      const auto gram = observers.at(reached[i]).gram();
      std::vector<ir::Tensor> values;
      for (const std::string& w : weights) values.push_back(constants.value(w));
      lock.unlock();
      const GramFactor factor(gram);
      for (std::size_t w = 0; w < weights.size(); ++w)
        round_again(encodings.at({weights[w], Role::weight}), values[w], factor);
    });
    for (const std::string& tensor : reached)
      rounded.insert(inputs.at(tensor).weights.begin(), inputs.at(tensor).weights.end());
  }
  return rounded;
}

}  // namespace bertcl::quant
