// SPDX-License-Identifier: Apache-2.0
// Subtracts the mean error of quantized MatMuls from the biases after them.
#include "quant/transforms/bias_correction.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "quant/calibration/channel_statistics.hpp"
#include "quant/placement/quantized_op.hpp"

namespace bertcl::quant {
namespace {

/// A MatMul with a bias.
struct Linear {
  int node = 0;
  std::string weight;
  ir::Tensor bias;
  BiasCorrection correction;  ///< without a corrected bias yet
};

/// By the tensor that is multiplied. MatMuls with a weight and without such a bias are `skipped`.
std::map<std::string, std::vector<Linear>> linears(const Encodings& encodings,
                                                   const Placement& placement,
                                                   const GraphIndex& index, Constants& constants,
                                                   const Structure& structure,
                                                   std::vector<SkippedNode>& skipped) {
  std::set<int> sites;
  for (const Site& site : placement.sites) sites.insert(site.node);
  std::map<std::string, std::vector<Linear>> all;
  for (const Site& site : placement.sites) {
    const auto& node = index.node(site.node);
    if (!is_op(node, "MatMul") || !site.has_weight()) continue;
    const auto skip = [&](std::string reason) {
      skipped.push_back({label_of(node), node.op_type(), std::move(reason)});
    };
    const auto& shape = encodings.at({node.input(1), Role::weight}).constant.values.shape();
    const int add = index.producer(structure.with_bias(node.output(0)));
    if (site.operands.size() != 2 || site.operands[0].role != Role::activation) {
      skip("its other operand has no Q/DQ of its own");
    } else if (shape.size() != 2) {
      skip(fmt::format("its weight has {} dimensions", shape.size()));
    } else if (add == site.node) {
      skip("no bias follows it");
    } else if (sites.contains(add)) {
      skip("the Add of its bias is quantized");
    } else {
      const int input = index.node(add).input(0) == node.output(0) ? 1 : 0;
      const std::string& tensor = index.node(add).input(input);
      const ir::Tensor bias = constants.value(tensor);
      if (bias.dtype() != ir::DType::f32 || ir::element_count(bias.shape()) != shape[1])
        skip("its bias does not have one float for each column");
      else
        all[node.input(0)].push_back({site.node, node.input(1), bias, {add, input, tensor, {}}});
    }
  }
  return all;
}

}  // namespace

void ShiftObserver::observe(const opencl::Buffer& values, std::int64_t rows,
                            std::int64_t channels) {
  if (rows == 0 || channels == 0) return;
  if (channels_ == 0) {
    channels_ = channels;
    state_ = context_->allocate(2 * static_cast<std::size_t>(channels) * sizeof(float));
    state_.fill(0);
  }
  const auto [lowest, highest] = integers_of(type_);
  auto kernel = context_->kernel("observe_channels", "observe_shift");
  kernels::set(kernel, kernels::ObserveShift<opencl::KernelArgument>{
                           .x = values,
                           .state = state_,
                           .rows = static_cast<std::int32_t>(rows),
                           .channels = static_cast<std::int32_t>(channels),
                           .scale = parameters_.scale,
                           .zero_point = parameters_.zero_point,
                           .lowest = static_cast<float>(lowest),
                           .highest = static_cast<float>(highest)});
  context_->queue().launch_items(kernel, {static_cast<std::size_t>((channels + 15) / 16), 1, 1},
                                 "observe_shift");
  rows_ += rows;
}

ChannelShift ShiftObserver::shift() const {
  if (rows_ == 0) throw_unseen(tensor_);
  std::vector<float> sums(2 * static_cast<std::size_t>(channels_));
  state_.read(std::as_writable_bytes(std::span(sums)));
  ChannelShift result;
  for (std::size_t i = 0; i < sums.size(); ++i)
    (i < sums.size() / 2 ? result.mean : result.shift)
        .push_back(sums[i] / static_cast<double>(rows_));
  return result;
}

std::vector<double> output_shift(const ChannelShift& x, std::span<const float> weight,
                                 const QuantizedConstant& quantized) {
  const ir::Tensor integers = quantized.values.converted(ir::DType::i32);
  const auto q = integers.as<std::int32_t>();
  const std::size_t channels = x.mean.size(), columns = weight.size() / channels;
  std::vector<double> shift(columns, 0.0);
  for (std::size_t k = 0; k < channels; ++k)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t i = k * columns + j;
      const std::size_t c = quantized.scales.size() == 1 ? 0 : quantized.axis == 1 ? j : k;
      const double w = (q[i] - quantized.zero_points[c]) * static_cast<double>(quantized.scales[c]);
      shift[j] += x.shift[k] * w + x.mean[k] * (w - weight[i]);
    }
  return shift;
}

CorrectedBiases correct_biases(const Encodings& encodings, const Placement& placement,
                               const GraphIndex& index, Constants& constants,
                               const Structure& structure, const Workspace& workspace,
                               std::span<const Sample> samples, const PassProgress& progress) {
  CorrectedBiases result{{}, other_than_matmuls(placement, index, "bias correction")};
  const auto inputs = linears(encodings, placement, index, constants, structure, result.skipped);
  std::set<std::string> tensors;
  for (const auto& [tensor, list] : inputs) tensors.insert(tensor);
  if (tensors.empty()) return result;

  const auto make = [&](opencl::Context& context, const std::string& tensor) {
    const Encoding& e = encodings.at({tensor, Role::activation});
    return ShiftObserver(context, tensor, e.parameters, e.type);
  };
  for (const auto& [tensor, observer] :
       observe_samples(workspace, tensors, samples, make, progress)) {
    const ChannelShift x = observer.shift();
    for (Linear linear : inputs.at(tensor)) {
      const ir::Tensor weight = constants.value(linear.weight);
      const auto shift =
          output_shift(x, weight.as<float>(), encodings.at({linear.weight, Role::weight}).constant);
      std::vector<float> corrected;
      for (const float b : linear.bias.as<float>())
        corrected.push_back(static_cast<float>(b - shift[corrected.size()]));
      linear.correction.corrected_bias =
          ir::Tensor::of<float>(linear.bias.shape(), std::move(corrected));
      result.by_site.emplace(linear.node, std::move(linear.correction));
    }
  }
  return result;
}

}  // namespace bertcl::quant
