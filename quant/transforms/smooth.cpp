// SPDX-License-Identifier: Apache-2.0
// Moves scale from the channels of an activation into the weights it is multiplied with.
#include "quant/transforms/smooth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "bertcl/error.hpp"
#include "quant/calibration/parallel.hpp"
#include "quant/graph/graph_edit.hpp"
#include "quant/graph/structure.hpp"
#include "quant/placement/quantized_op.hpp"

namespace bertcl::quant {
namespace {

constexpr double kAlphas[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
constexpr double kMultiples[] = {0.5, 1.0, 1.5, 2.0, 3.0, 4.0};
constexpr double kOutlierAlphas[] = {0.5, 0.75, 1.0};
/// A Mul in the graph must save this part of the error.
constexpr double kMinGain = 0.1;
/// A channel whose largest magnitude is a smaller part of the usual one was hardly seen.
constexpr float kMinSeen = 1e-3f;
/// About what GPTQ leaves of a weight's squared error; the choice of factors does not depend on it.
constexpr double kGptqErrorPart = 0.5;

/// A factor after such a node would be a pass over memory of its own.
bool is_view(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  return moves_elements(node) || op == "Flatten" || op == "Cast" || op == "Gather" ||
         op == "Concat" || op == "DequantizeLinear";
}

/// False also for weights after nodes that cannot be evaluated; encode() says so later.
bool is_float_matrix(Constants& constants, const std::string& weight) {
  try {
    const ir::Tensor value = constants.value(weight);
    return value.shape().size() == 2 && value.dtype() == ir::DType::f32;
  } catch (const Error&) {
    return false;
  }
}

float median(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of each channel. The samples say little of one that they hardly reach, as of a ReLU's that is 0
/// in all of them: a factor by so small a magnitude would clip whatever else it takes. It counts as
/// a usual one.
std::vector<float> largest_magnitude(const ChannelStatistics& x) {
  std::vector<float> largest(x.channels());
  for (std::size_t k = 0; k < largest.size(); ++k)
    largest[k] = std::max({-x.low[k], x.high[k], 1e-5f});
  std::vector<float> seen;
  std::ranges::copy_if(largest, std::back_inserter(seen), [](float v) { return v > 1e-5f; });
  if (seen.empty()) return largest;
  const float usual = median(std::move(seen));
  for (float& v : largest)
    if (v < kMinSeen * usual) v = usual;
  return largest;
}

std::vector<float> largest_weight(std::span<const WeightView> weights, std::size_t channels) {
  std::vector<float> largest(channels, 1e-5f);
  for (const WeightView& w : weights)
    for (std::size_t k = 0; k < channels; ++k)
      for (const float v : w.values.subspan(k * static_cast<std::size_t>(w.columns),
                                            static_cast<std::size_t>(w.columns)))
        largest[k] = std::max(largest[k], std::abs(v));
  return largest;
}

std::vector<float> with_unit_mean(std::vector<double> factors) {
  double log_sum = 0.0;
  for (const double f : factors) log_sum += std::log(f);
  const double mean = std::exp(log_sum / static_cast<double>(factors.size()));
  std::vector<float> result;
  for (const double f : factors) result.push_back(static_cast<float>(f / mean));
  return result;
}

std::vector<float> smoothquant(const std::vector<float>& x, const std::vector<float>& w,
                               double alpha) {
  std::vector<double> factors;
  for (std::size_t k = 0; k < x.size(); ++k)
    factors.push_back(std::pow(x[k], alpha) / std::pow(w[k], 1.0 - alpha));
  return with_unit_mean(std::move(factors));
}

std::vector<float> outliers(const std::vector<float>& x, double multiple, double alpha) {
  const float middle = median(x);
  std::vector<double> factors;
  for (const float v : x)
    factors.push_back(std::pow(std::max(1.0, v / (multiple * middle)), alpha));
  return with_unit_mean(std::move(factors));
}

/// The values of a weight [K][N] that share a scale.
enum class Group { matrix, row, column };

Group group_of(const WeightOptions& options) {
  if (!options.per_channel) return Group::matrix;
  return options.scales_rows() ? Group::row : Group::column;
}

/// 0 for zeros, which are met exactly, and for what cannot be quantized, as encode() says later.
double step_of(Range range, Scheme scheme) {
  if (range == Range{} || !std::isfinite(range.low) || !std::isfinite(range.high)) return 0.0;
  return parameters_of(range, scheme).scale;
}

/// s W
struct ScaledWeight {
  std::vector<Range> ranges;  ///< of each group
  double squares = 0.0;       ///< their sum
};

ScaledWeight scale(const WeightView& w, std::span<const float> factors, Group group) {
  const auto columns = static_cast<std::size_t>(w.columns);
  ScaledWeight result;
  std::vector<double> squares(columns, 0.0);
  std::vector<float> low(columns, 0.0f), high(columns, 0.0f);
  const auto add_all_columns = [&] {
    if (columns == 0) return;
    result.ranges.push_back({*std::ranges::min_element(low), *std::ranges::max_element(high)});
  };
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const auto row = w.values.subspan(k * columns, columns);
    for (std::size_t j = 0; j < columns; ++j) {
      const float v = row[j] * factors[k];
      squares[j] += v * v;
      low[j] = v < low[j] ? v : low[j];
      high[j] = v > high[j] ? v : high[j];
    }
    if (group != Group::row) continue;
    add_all_columns();
    std::ranges::fill(low, 0.0f);
    std::ranges::fill(high, 0.0f);
  }
  if (group == Group::matrix) add_all_columns();
  for (std::size_t j = 0; j < columns; ++j) {
    if (group == Group::column) result.ranges.push_back({low[j], high[j]});
    result.squares += squares[j];
  }
  return result;
}

bool is_shared(const GraphIndex& index, const std::string& weight) {
  return index.uses(weight).size() > 1 || index.read_elsewhere(weight);
}

/// One scaling of a shared weight would have to serve all its readers.
std::vector<SkippedNode> not_smoothed(const GraphIndex& index, const Placement& placement) {
  auto nodes = other_than_matmuls(placement, index, "smoothing");
  for (const Site& site : placement.sites) {
    const auto& node = index.node(site.node);
    if (is_op(node, "MatMul") && site.operands.size() == 2 &&
        site.operands[1].role == Role::weight && is_shared(index, site.operands[1].tensor))
      nodes.push_back({label_of(node), node.op_type(), "several nodes read its weight"});
  }
  return nodes;
}

}  // namespace

std::vector<SmoothTarget> smooth_targets(const GraphIndex& index, Constants& constants,
                                         const Placement& placement) {
  std::map<std::string, SmoothTarget> targets;
  std::set<std::string> unfit;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands) {
      if (operand.role != Role::activation) continue;
      const auto& node = index.node(site.node);
      const int producer = index.producer(operand.tensor);
      const bool fits = is_op(node, "MatMul") && operand.input == 0 && site.operands.size() == 2 &&
                        site.operands[1].role == Role::weight && producer >= 0 &&
                        !is_view(index.node(producer)) && is_float_matrix(constants, node.input(1));
      if (!fits) {
        unfit.insert(operand.tensor);
        continue;
      }
      SmoothTarget& target = targets[operand.tensor];
      target.tensor = operand.tensor;
      target.nodes.push_back(site.node);
      target.weights.push_back(node.input(1));
    }
  // What is quantized for all readers would be rounded twice.
  unfit.insert(placement.outputs.begin(), placement.outputs.end());
  std::vector<SmoothTarget> result;
  for (auto& [tensor, target] : targets) {
    // A weight that two layers share can be scaled for one of them only.
    const bool own = std::ranges::none_of(
        target.weights, [&](const std::string& w) { return is_shared(index, w); });
    if (own && !unfit.contains(tensor)) result.push_back(std::move(target));
  }
  return result;
}

double expected_error(const ChannelStatistics& x, std::span<const WeightView> weights,
                      std::span<const float> factors, const SmoothOptions& options) {
  const std::size_t channels = x.channels();
  double low = 0.0, high = 0.0, energy = 0.0;  // of x / s; energy: mean square of a row
  for (std::size_t k = 0; k < channels; ++k) {
    low = std::min(low, static_cast<double>(x.low[k] / factors[k]));
    high = std::max(high, static_cast<double>(x.high[k] / factors[k]));
    energy += x.mean_square[k] / (factors[k] * factors[k]);
  }
  if (options.symmetric_ranges) {
    high = std::max(-low, high);
    low = -high;
  }
  const double step =
      step_of({static_cast<float>(low), static_cast<float>(high)}, options.activations);
  const Group group = group_of(options.weights);
  const bool gptq = options.gptq && !options.weights.as_float && group != Group::row;
  double error = 0.0;
  for (const WeightView& w : weights) {
    const ScaledWeight scaled = scale(w, factors, group);
    const double columns = static_cast<double>(w.columns);
    double weight_error = 0.0;
    for (std::size_t g = 0; g < scaled.ranges.size(); ++g) {
      const double read = group == Group::column ? energy
                          : group == Group::row
                              ? columns * x.mean_square[g] / (factors[g] * factors[g])
                              : columns * energy;
      const double weight_step = step_of(scaled.ranges[g], options.weights.used_scheme());
      weight_error += weight_step * weight_step * read;
    }
    error += (step * step * scaled.squares + (gptq ? kGptqErrorPart : 1.0) * weight_error) / 12.0;
  }
  return error;
}

Smoothing choose_factors(const std::string& tensor, const ChannelStatistics& x,
                         std::span<const WeightView> weights, const SmoothOptions& options) {
  const auto largest = largest_magnitude(x);
  const auto error = [&](std::span<const float> factors) {
    return expected_error(x, weights, factors, options);
  };
  Smoothing best;
  best.tensor = tensor;
  best.error_before = error(std::vector<float>(x.channels(), 1.0f));
  best.error_after = best.error_before;
  const auto try_factors = [&](std::vector<float> factors, std::string choice) {
    const double e = error(factors);
    if (!options.alpha && !(e < best.error_after)) return;
    best.error_after = e;
    best.factors = std::move(factors);
    best.choice = std::move(choice);
  };
  const auto weight = largest_weight(weights, x.channels());
  if (options.alpha) {
    try_factors(smoothquant(largest, weight, *options.alpha),
                fmt::format("alpha {}", *options.alpha));
    return best;
  }
  for (const double alpha : kAlphas)
    try_factors(smoothquant(largest, weight, alpha), fmt::format("alpha {}", alpha));
  for (const double multiple : kMultiples)
    for (const double alpha : kOutlierAlphas)
      try_factors(outliers(largest, multiple, alpha),
                  fmt::format("beyond {} x median, alpha {}", multiple, alpha));
  if (!(best.error_after <= (1.0 - kMinGain) * best.error_before)) {
    best.factors.clear();
    best.choice.clear();
    best.error_after = best.error_before;
  }
  return best;
}

namespace {

/// A copy of W with row k times factors[k], as a new initializer.
std::string scaled_weight(Model& model, Constants& constants, const std::string& weight,
                          const std::vector<float>& factors) {
  const ir::Tensor old = constants.value(weight);
  const auto from = old.as<float>();
  std::vector<float> values(from.begin(), from.end());
  const auto columns = static_cast<std::size_t>(old.shape()[1]);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i / columns];
  return model.add(model.fresh_name(weight + "_smoothed"),
                   ir::Tensor::of<float>(old.shape(), std::move(values)));
}

onnx::NodeProto mul_node(Model& model, const std::string& tensor,
                         const std::vector<float>& factors) {
  std::vector<float> inverse;
  for (const float f : factors) inverse.push_back(1.0f / f);
  const auto channels = std::ssize(inverse);
  const std::string factor = model.add(model.fresh_name(tensor + "_smooth_factor"),
                                       ir::Tensor::of<float>({channels}, std::move(inverse)));
  return make_node(model, "Mul", tensor + "_smooth", {tensor, factor},
                   {model.fresh_name(tensor + "_smoothed")});
}

}  // namespace

void apply_smoothing(Model& model, std::span<const SmoothTarget> targets,
                     std::span<const Smoothing> smoothings) {
  const GraphIndex index(model.graph());
  Constants constants(model, index);
  Sources before;                                     // where the weights came from
  std::map<int, std::vector<onnx::NodeProto>> added;  // by the node they follow
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const SmoothTarget& target = targets[t];
    const auto& factors = smoothings[t].factors;
    if (factors.empty()) continue;
    const onnx::NodeProto mul = mul_node(model, target.tensor, factors);
    for (std::size_t i = 0; i < target.nodes.size(); ++i) {
      constants.collect(target.weights[i], before);
      const std::string weight = scaled_weight(model, constants, target.weights[i], factors);
      auto& matmul = *model.proto().mutable_graph()->mutable_node(target.nodes[i]);
      matmul.set_input(0, mul.output(0));
      matmul.set_input(1, weight);
    }
    added[index.producer(target.tensor)].push_back(mul);
  }
  insert_nodes(model, std::move(added));
  remove_unread(model, before);
}

Smoothed smooth_model(Model& model, const GraphIndex& index, Constants& constants,
                      const Placement& placement, const SmoothOptions& options,
                      const Workspace& workspace, std::span<const Sample> samples,
                      const PassProgress& progress) {
  Smoothed result{.skipped = not_smoothed(index, placement)};
  const auto targets = smooth_targets(index, constants, placement);
  std::set<std::string> tensors;
  for (const SmoothTarget& t : targets) tensors.insert(t.tensor);
  if (targets.empty()) return result;
  const auto statistics = channel_statistics(workspace, tensors, samples, progress);
  std::vector<Smoothing>& chosen = result.tensors;
  chosen.resize(targets.size());
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
  return result;
}

}  // namespace bertcl::quant
