// SPDX-License-Identifier: Apache-2.0
// Gives each tensor of a placement its scale, zero point and, where constant, its integers.
#include "quant/encoding/encode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// An operand that cannot be quantized, and why: its site stays in float.
struct Refusal {
  std::string reason;
};

/// Scales and integers for the operands of one node after the other.
class Encoder {
 public:
  Encoder(const GraphIndex& index, Constants& constants, const Ranges& ranges,
          const EncodeOptions& options)
      : index_(index), constants_(constants), ranges_(ranges), options_(options) {}

  void encode(const Site& site) {
    const auto& node = index_.node(site.node);
    Encodings added;
    for (const Operand& operand : site.operands) {
      const auto key = std::pair(operand.tensor, operand.role);
      if (all_.contains(key) || added.contains(key)) continue;
      Encoding e = operand.role == Role::activation ? activation(operand.tensor, node)
                   : operand.role == Role::channels ? channels(operand.tensor, node)
                                                    : constant(operand, node);
      check(e, operand.tensor);
      added.emplace(key, std::move(e));
    }
    all_.merge(added);
    for (const Operand& operand : site.operands)
      add_reader(all_.at({operand.tensor, operand.role}), node);
  }

  void encode_output(const std::string& tensor) {
    const auto key = std::pair(tensor, Role::activation);
    auto known = all_.find(key);
    if (known == all_.end()) {
      const Encoding e = activation(tensor, index_.node(index_.producer(tensor)));
      check(e, tensor);
      known = all_.emplace(key, e).first;
    }
    for (const Use use : index_.uses(tensor)) add_reader(known->second, index_.node(use.node));
  }

  Encodings take() { return std::move(all_); }

  /// An axis that no weight of its operator has is a mistake.
  void check_axes() const {
    for (const auto& [op, refusal] : without_axis_)
      if (!with_axis_.contains(op)) fail("{} matches no weight: {}", option_name("axis"), refusal);
  }

  void check_overrides() const {
    std::set<std::string> quantized;
    for (const auto& [key, encoding] : all_) quantized.insert(key.first);
    for (const auto& [tensor, o] : options_.overrides)
      if (!quantized.contains(tensor)) fail("{}: no tensor of this name is quantized", o.place);
  }

 private:
  static void add_reader(Encoding& e, const onnx::NodeProto& node) {
    const std::string& label = label_of(node);
    if (std::ranges::find(e.nodes, label) == e.nodes.end()) e.nodes.push_back(label);
  }

  static void check(const Encoding& e, const std::string& tensor) {
    if (std::max(-e.range.low, e.range.high) > kLargestQuantized)
      throw Refusal{
          fmt::format("tensor '{}' takes values from {} to {}, like a mask; its scale would round "
                      "all other values to zero",
                      tensor, e.range.low, e.range.high)};
  }

  /// The axis of a weight's channels.
  int channel_axis(const onnx::NodeProto& node, int rank) {
    int axis = is_op(node, "Conv")   ? 0
               : is_op(node, "Gemm") ? (int_attribute(node, "transB", 0) != 0 ? 0 : 1)
                                     : rank - 1;
    const auto& axes = options_.weights.axes;
    if (const auto it = axes.find(node.op_type()); it != axes.end()) {
      axis = it->second < 0 ? it->second + rank : it->second;
      if (axis < 0 || axis >= rank) {
        const std::string reason =
            fmt::format("axis {} is out of range: the weight has {} dimensions", it->second, rank);
        without_axis_.emplace(it->first, fmt::format("node '{}': {}", label_of(node), reason));
        throw Refusal{reason};
      }
      with_axis_.insert(it->first);
    }
    return axis;
  }

  static void check_columns(const QuantizedConstant& weight) {
    const auto rank = static_cast<int>(weight.values.shape().size());
    if (rank < 2) throw Refusal{"its weight has no columns"};
    if (weight.axis >= 0 && weight.axis != rank - 1)
      throw Refusal{fmt::format(
          "its weight has scales along axis {}; an integer MatMul has scales per column, axis {}",
          weight.axis, rank - 1)};
  }

  static void check_sums(const QuantizedConstant& weight, std::int64_t largest_activation) {
    const bool within_128 = weight.values.dtype() == ir::DType::i8 &&
                            std::ranges::all_of(weight.zero_points, [](auto z) { return z == 0; });
    const std::int64_t rows = weight.values.shape()[weight.values.shape().size() - 2];
    const std::int64_t max_rows =
        std::numeric_limits<std::int32_t>::max() / (largest_activation * (within_128 ? 128 : 255));
    if (rows > max_rows)
      throw Refusal{fmt::format(
          "its weight has K = {}, which can overflow the int32 accumulator (at most {})", rows,
          max_rows)};
  }

  Encoding activation(const std::string& tensor, const onnx::NodeProto& node) const {
    const auto it = ranges_.find(tensor);
    if (it == ranges_.end())
      fail(
          "tensor '{}' of node '{}' has no range: calibration did not observe "
          "it, or the table does not name it; exclude the node to leave it in "
          "float",
          tensor, label_of(node));
    Encoding e;
    e.type = options_.activations.type;
    e.range = it->second;
    if (const TensorOverride* o = override_of(tensor)) {
      override_activation(e, *o);
    } else {
      e.parameters = parameters_of(e.range, options_.activations);
    }
    return e;
  }

  const TensorOverride* override_of(const std::string& tensor) const {
    const auto it = options_.overrides.find(tensor);
    return it == options_.overrides.end() ? nullptr : &it->second;
  }

  static Parameters checked(const Parameters& p, ir::DType type, const TensorOverride& o) {
    const auto [low, high] = integers_of(type);
    if (p.zero_point < low || p.zero_point > high)
      fail("{}: its zero_point is {}, but {} ranges from {} to {}", o.place, p.zero_point,
           ir::name_of(type), low, high);
    return p;
  }

  static Parameters parameters_for(Range range, Scheme scheme, const TensorOverride& o) {
    try {
      return parameters_of(range, scheme);
    } catch (const Error& error) {
      fail("{}: {}", o.place, error.what());
    }
  }

  void override_activation(Encoding& e, const TensorOverride& tensor) const {
    const Override& o = tensor.channels.front();
    if (tensor.axis || o.reduced)
      fail("{}: {} is for weights, this is an activation", tensor.place,
           tensor.axis ? "an axis" : "reduce_range");
    const Scheme scheme = overridden(options_.activations, o);
    e.type = scheme.type;
    if (!o.parameters) {
      e.range = overridden(e.range, o);
      e.parameters = parameters_for(e.range, scheme, tensor);
      return;
    }
    e.parameters = checked(*o.parameters, e.type, tensor);
    const auto [low, high] = integers_of(e.type);
    const auto real = [&](std::int32_t q) {
      return static_cast<float>(q - e.parameters.zero_point) * e.parameters.scale;
    };
    e.range = {real(low), real(high)};
  }

  QuantizedConstant override_constant(const ir::Tensor& value, const Operand& operand,
                                      const TensorOverride& tensor) const {
    const bool weight = operand.role == Role::weight;
    const auto rank = static_cast<int>(value.shape().size());
    int axis = -1;
    if (tensor.axis) {
      axis = *tensor.axis < 0 ? *tensor.axis + rank : *tensor.axis;
      if (!weight || axis < 0 || axis >= rank)
        fail("{}: axis {} {}", tensor.place, *tensor.axis,
             weight ? fmt::format("is outside the weight's {} dimensions", rank)
                    : "is given, but only weights have an axis of scales; remove it");
    }
    const auto ranges = ranges_along(value, axis, operand.tensor);
    if (tensor.channels.size() > 1 && tensor.channels.size() != ranges.size())
      fail("{}: {} entries for {} channels", tensor.place, tensor.channels.size(), ranges.size());
    const Override& first = tensor.channels.front();
    const Scheme usual = weight ? options_.weights.scheme : options_.activations;
    Scheme scheme = overridden(usual, first);
    // The rules of onnxruntime: channels are symmetric, and weights of another type as is usual for
    // it.
    if (!first.symmetric && axis >= 0) scheme.symmetric = true;
    if (!first.symmetric && axis < 0 && weight && scheme.type != usual.type)
      scheme.symmetric = scheme.type == ir::DType::i8;
    std::vector<Parameters> parameters;
    for (std::size_t c = 0; c < ranges.size(); ++c) {
      const Override& o = tensor.channels[tensor.channels.size() == 1 ? 0 : c];
      parameters.push_back(o.parameters ? checked(*o.parameters, scheme.type, tensor)
                                        : parameters_for(overridden(ranges[c], o), scheme, tensor));
    }
    return quantize_by(value, parameters, axis, scheme, operand.tensor);
  }

  Encoding channels(const std::string& tensor, const onnx::NodeProto& node) const {
    const auto it = options_.channels.find(tensor);
    if (it == options_.channels.end())
      fail(
          "tensor '{}' of node '{}' has no per-channel ranges, which only calibration "
          "finds; give it one scale, or exclude the node",
          tensor, label_of(node));
    const ChannelStatistics& s = it->second;
    if (const TensorOverride* o = override_of(tensor))
      fail("{}: it has per-channel scales (add_channels); give it one scale to override it",
           o->place);
    Encoding e;
    e.role = Role::channels;
    e.type = options_.activations.type;
    e.range = {*std::ranges::min_element(s.low), *std::ranges::max_element(s.high)};
    for (std::size_t c = 0; c < s.channels(); ++c) {
      // What was always 0 gets the scale of the tensor: 1 might be any number of times too much.
      const Range seen{s.low[c], s.high[c]};
      const Parameters p = parameters_of(seen == Range{} ? e.range : seen, options_.activations);
      e.constant.scales.push_back(p.scale);
      e.constant.zero_points.push_back(p.zero_point);
    }
    e.parameters = {e.constant.scales.front(), e.constant.zero_points.front()};
    return e;
  }

  Encoding constant(const Operand& operand, const onnx::NodeProto& node) {
    Encoding e;
    e.role = operand.role;
    ir::Tensor value;
    try {
      value = constants_.value(operand.tensor);
      if (value.dtype() != ir::DType::f32)
        throw Refusal{
            fmt::format("constant '{}' is {}; only models that compute in f32 can be quantized",
                        operand.tensor, ir::name_of(value.dtype()))};
      e.range = range_of(value, operand.tensor);
    } catch (const Error& error) {
      throw Refusal{error.what()};
    }
    if (const TensorOverride* o = override_of(operand.tensor)) {
      e.constant = override_constant(value, operand, *o);
    } else {
      try {
        e.constant = usual_constant(value, operand, node, e.range);
      } catch (const Error& error) {
        throw Refusal{error.what()};
      }
    }
    if (options_.largest_activation > 0 && operand.role == Role::weight) {
      check_columns(e.constant);
      check_sums(e.constant, options_.largest_activation);
    }
    e.type = e.constant.values.dtype();
    if (!e.constant.scales.empty())
      e.parameters = {e.constant.scales.front(), e.constant.zero_points.front()};
    return e;
  }

  QuantizedConstant usual_constant(const ir::Tensor& value, const Operand& operand,
                                   const onnx::NodeProto& node, Range& range) {
    if (operand.role == Role::constant)
      return quantize_per_tensor(value, options_.activations, operand.tensor);
    const WeightOptions& weights = options_.weights;
    const auto rank = static_cast<int>(value.shape().size());
    const bool minimizes_error = weights.scale == WeightScale::mse;
    if (weights.per_channel && rank >= 2) {
      const auto by = minimizes_error ? quantize_by_min_error : quantize_per_channel;
      return by(value, channel_axis(node, rank), operand.tensor, weights.scheme);
    }
    if (const auto it = ranges_.find(operand.tensor); it != ranges_.end())
      range = it->second;
    else if (minimizes_error)
      return quantize_by_min_error(value, -1, operand.tensor, weights.scheme);
    return quantize_per_tensor(value, weights.scheme, operand.tensor, range);
  }

  const GraphIndex& index_;
  Constants& constants_;
  const Ranges& ranges_;
  const EncodeOptions& options_;
  Encodings all_;
  std::map<std::string, std::string> without_axis_;  // operators, and the first node that refuses
  std::set<std::string> with_axis_;
};

}  // namespace

Scheme WeightOptions::used_scheme() const {
  Scheme used = scheme;
  used.symmetric = used.symmetric || per_channel;
  return used;
}

bool WeightOptions::scales_rows() const {
  const auto axis = axes.find("MatMul");
  return per_channel && axis != axes.end() && (axis->second == 0 || axis->second == -2);
}

Encodings encode(Placement& placement, const GraphIndex& index, Constants& constants,
                 const Ranges& ranges, const EncodeOptions& options) {
  Encoder encoder(index, constants, ranges, options);
  const auto kept = [&](int node, const auto& encode_one) {
    try {
      encode_one();
      return true;
    } catch (const Refusal& refusal) {
      const auto& proto = index.node(node);
      placement.skipped.push_back({label_of(proto), proto.op_type(), refusal.reason});
      return false;
    }
  };
  std::erase_if(placement.sites,
                [&](const Site& site) { return !kept(site.node, [&] { encoder.encode(site); }); });
  std::erase_if(placement.outputs, [&](const std::string& tensor) {
    return !kept(index.producer(tensor), [&] { encoder.encode_output(tensor); });
  });
  encoder.check_axes();
  if (placement.sites.empty() && placement.outputs.empty())
    fail("nothing to quantize; an example is node '{}' ({}): {}", placement.skipped.front().node,
         placement.skipped.front().op, placement.skipped.front().reason);
  encoder.check_overrides();
  return encoder.take();
}

}  // namespace bertcl::quant
