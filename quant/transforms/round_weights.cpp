// SPDX-License-Identifier: Apache-2.0
// Rounds the weights of a placement again, with GPTQ.
#include "quant/transforms/round_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/parallel.hpp"
#include "quant/transforms/gptq.hpp"

namespace bertcl::quant {
namespace {

constexpr std::int64_t kGramBytes = 576 << 20;  // on the device; those of BERT-base take 513 MiB

/// Weights that the same inputs are multiplied with: one, or those of all nodes that share them.
struct RoundedTogether {
  std::set<std::string> inputs;
  std::int64_t channels = 0;
  std::vector<std::string> weights;
};

/// Why the weight of a site stays as it is; "" if it does not.
std::string why_nearest(const onnx::NodeProto& node, const Encoding& e) {
  const auto& shape = e.constant.values.shape();
  if (!is_op(node, "MatMul")) return fmt::format("GPTQ is for MatMul, not for {}", node.op_type());
  if (shape.size() != 2) return fmt::format("its weight has {} dimensions", shape.size());
  if (e.constant.axis != 1 && e.constant.scales.size() != 1)
    return "its weight has scales along its rows";
  return "";
}

std::vector<RoundedTogether> weights_together(const Encodings& encodings,
                                              const Placement& placement, const GraphIndex& index,
                                              std::map<std::string, std::string>& nearest) {
  std::map<std::string, std::set<std::string>> inputs;  // of each weight
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands) {
      if (operand.role != Role::weight) continue;
      const auto& node = index.node(site.node);
      inputs[operand.tensor].insert(node.input(0));
      const std::string reason = why_nearest(node, encodings.at({operand.tensor, Role::weight}));
      if (!reason.empty()) nearest.emplace(operand.tensor, reason);
    }
  std::map<std::set<std::string>, std::vector<std::string>> weights;
  for (const auto& [weight, its_inputs] : inputs)
    if (!nearest.contains(weight)) weights[its_inputs].push_back(weight);
  std::vector<RoundedTogether> groups;
  for (const auto& [its_inputs, names] : weights)
    groups.push_back({its_inputs,
                      encodings.at({names.front(), Role::weight}).constant.values.shape()[0],
                      names});
  return groups;
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

RoundedWeights round_weights(Encodings& encodings, const Placement& placement,
                             const GraphIndex& index, Constants& constants,
                             const Workspace& workspace, std::span<const Sample> samples,
                             const PassProgress& progress) {
  RoundedWeights result;
  const auto groups = weights_together(encodings, placement, index, result.nearest);
  for (auto next = groups.begin(); next != groups.end();) {
    std::map<std::string, std::vector<const RoundedTogether*>> readers;  // by input
    std::set<std::string> tensors;
    std::int64_t bytes = 0;
    for (; next != groups.end(); ++next) {
      const std::int64_t more = next->channels * next->channels * 4;
      if (!tensors.empty() && bytes + more > kGramBytes) break;
      bytes += more;
      tensors.insert(next->inputs.begin(), next->inputs.end());
      for (const std::string& input : next->inputs) readers[input].push_back(&*next);
    }
    std::map<const RoundedTogether*, GramObserver> observers;
    run_samples(
        workspace, tensors, samples,
        [&](opencl::Context& context, const std::string& tensor, const opencl::Buffer& values,
            std::int64_t rows, std::int64_t channels) {
          for (const RoundedTogether* group : readers.at(tensor))
            observers.try_emplace(group, context, tensor)
                .first->second.observe(values, rows, channels);
        },
        progress);
    std::vector<const RoundedTogether*> reached;
    for (const auto& [group, observer] : observers) reached.push_back(group);
    std::mutex device_and_result_mutex;  // guards the queue, the constants and the result
    in_parallel(reached.size(), [&](std::size_t i) {
      std::unique_lock lock(device_and_result_mutex);
      const std::vector<std::string>& weights = reached[i]->weights;
      const auto gram = observers.at(reached[i]).gram();
      std::vector<ir::Tensor> values;
      for (const std::string& w : weights) values.push_back(constants.value(w));
      lock.unlock();
      std::string failure;
      try {
        const GramFactor factor(gram);
        for (std::size_t w = 0; w < weights.size(); ++w)
          round_again(encodings.at({weights[w], Role::weight}), values[w], factor);
      } catch (const Error& error) {
        failure = error.what();
      }
      lock.lock();
      for (const std::string& w : weights)
        if (failure.empty())
          result.rounded.insert(w);
        else
          result.nearest.emplace(w, failure);
    });
  }
  return result;
}

}  // namespace bertcl::quant
