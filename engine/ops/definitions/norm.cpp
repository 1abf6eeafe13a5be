// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, LayerNormalization and RMSNormalization. Sums are kept in double.
#include <algorithm>
#include <cmath>

#include "ops/norm.hpp"
#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

std::vector<ir::Type> infer_softmax(InferContext& context) {
  context.axis("axis", -1, context.shape(0).size());
  return {context.type(0)};
}
template <bool Log>
std::vector<ir::Tensor> evaluate_softmax(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", -1, x.shape().size());
  const std::int64_t n = x.shape()[axis], step = dense_strides(x.shape())[axis];
  std::vector<double> v = x.to_doubles();
  ir::Sizes lines = x.shape();
  lines[axis] = 1;
  if (n > 0)
    walk<1>(lines, {dense_strides(x.shape())}, [&](const auto& at) {
      double* p = v.data() + at[0];
      double highest = p[0], sum = 0;
      for (std::int64_t i = 1; i < n; ++i) highest = std::max(highest, p[i * step]);
      for (std::int64_t i = 0; i < n; ++i) sum += std::exp(p[i * step] - highest);
      for (std::int64_t i = 0; i < n; ++i) {
        double& e = p[i * step];
        e = Log ? e - highest - std::log(sum) : std::exp(e - highest) / sum;
      }
    });
  return {ir::Tensor::of<double>(x.shape(), std::move(v)).converted(x.dtype())};
}

std::vector<std::int64_t> axis_of_softmax(const ir::Node& node) {
  return {node.int_attribute("axis", -1)};
}

std::vector<std::int64_t> normalized_axes(const ir::Node& node) {
  std::vector<std::int64_t> axes = all_axes(node);
  axes.erase(axes.begin(),
             axes.begin() + static_cast<std::ptrdiff_t>(axis_of(node, "axis", -1, axes.size())));
  return axes;
}

/// LayerNormalization(x, scale, bias) {axis, epsilon}: statistics over the extents from axis on.
std::vector<ir::Type> infer_layer_norm(InferContext& context) {
  const ir::Type& in = context.type(0);
  const auto axis = context.axis("axis", -1, in.shape.size());
  const ir::Shape normalized(in.shape.begin() + axis, in.shape.end());
  for (std::size_t i = 1; i < context.node.inputs.size(); ++i)
    if (context.has(i) && broadcast(context, normalized, context.shape(i)) != normalized)
      context.fail("{} does not match the normalized extents {}", context.described(i),
                   ir::str(normalized));
  return {in};
}
/// RMSNormalization(x, scale) {axis, epsilon}: the same without mean and bias.
template <bool Rms>
std::vector<ir::Tensor> evaluate_layer_norm(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", -1, x.shape().size());
  const double epsilon = context.node.float_attribute("epsilon", 1e-5);
  const ir::Sizes normalized(x.shape().begin() + axis, x.shape().end());
  const std::int64_t n = ir::element_count(normalized);
  const auto expanded = [&](std::size_t i, double default_value) {
    if (!context.has(i)) return std::vector<double>(n, default_value);
    const ir::Tensor& t = context.in(i);
    return gather_strided(t, normalized, broadcast_strides(t.shape(), normalized)).to_doubles();
  };
  const auto scale = expanded(1, 1.0), bias = expanded(2, 0.0);
  std::vector<double> v = x.to_doubles();
  normalize_rows(v, scale, bias, epsilon, Rms);
  return {ir::Tensor::of<double>(x.shape(), std::move(v)).converted(x.dtype())};
}

}  // namespace

std::vector<OpDef> norm_ops() {
  const Traits norm{.is_norm = true, .mixed_axes = normalized_axes};
  const Traits softmax{.mixed_axes = axis_of_softmax};
  return {
      op("Softmax", 1, 1, {{types::floats}}, infer_softmax, evaluate_softmax<false>, nullptr,
         softmax),
      op("LogSoftmax", 1, 1, {{types::floats}}, infer_softmax, evaluate_softmax<true>, nullptr,
         softmax),
      op("LayerNormalization", 1, 3, {{types::floats, 't'}}, infer_layer_norm,
         evaluate_layer_norm<false>, nullptr, norm),
      op("RMSNormalization", 2, 2, {{types::floats, 't'}}, infer_layer_norm,
         evaluate_layer_norm<true>, nullptr, norm),
  };
}

}  // namespace bertcl::ops
