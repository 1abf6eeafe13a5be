// SPDX-License-Identifier: Apache-2.0
// linear and linear_q: MatMul with a weight, bias, activation and quantization of the result.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"

namespace bertcl::ops {
namespace {

/// x[.., K] and w[K, N] give [.., N].
ir::Shape linear_shape(const InferContext& context) {
  ir::Shape shape = context.shape(0);
  const ir::Shape& w = context.shape(1);
  if (shape.empty() || w.size() != 2)
    context.fail("cannot multiply {} by the weight {}", context.described(0), context.described(1));
  same_extent(context, shape.back(), w[0], "the inner extent");
  shape.back() = w[1];
  return shape;
}

/// Rows of x times columns of w, in the type Sum.
template <class Sum>
std::vector<Sum> rows_times_columns(const std::vector<Sum>& x, const std::vector<Sum>& w,
                                    std::int64_t k, std::int64_t n) {
  const std::int64_t rows = std::ssize(x) / std::max<std::int64_t>(k, 1);
  std::vector<Sum> y(rows * n, Sum{});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * w[p * n + j];
  return y;
}

double activated(const EvaluateContext& context, double x) {
  if (!context.node.has("activation")) return x;
  const std::string& name = context.node.string_attribute("activation");
  if (name == "relu") return x > 0 ? x : std::isnan(x) ? x : 0.0;
  if (name == "tanh") return std::tanh(x);
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  if (name == "gelu_tanh")
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
  context.fail("unknown activation '{}'", name);
}

ir::Sizes linear_sizes(const EvaluateContext& context) {
  ir::Sizes sizes = context.in(0).shape();
  sizes.back() = context.in(1).shape().back();
  return sizes;
}

void add_bias_and_activate(const EvaluateContext& context, std::vector<double>& y) {
  const std::vector<double> bias =
      context.has(2) ? context.in(2).to_doubles() : std::vector<double>{0.0};
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = activated(context, y[i] + bias[i % bias.size()]);
}

std::vector<ir::Type> infer_linear(InferContext& context) {
  ir::Shape shape = linear_shape(context);
  check_vector(context, operands::linear::bias, shape.back());
  precision_of(context.node);  // throws if it is unknown
  return {{type_of_result(context, 0, kNoOperand), std::move(shape)}};
}
std::vector<ir::Tensor> evaluate_linear(const EvaluateContext& context) {
  const ir::Tensor& w = context.in(operands::linear::w);
  std::vector<double> y = rows_times_columns(context.in(operands::linear::x).to_doubles(),
                                             w.to_doubles(), w.shape()[0], w.shape()[1]);
  add_bias_and_activate(context, y);
  return {result_of(context, 0, linear_sizes(context), y, kNoOperand, kNoOperand)};
}

std::vector<ir::Type> infer_linear_q(InferContext& context) {
  namespace o = operands::linear_q;
  ir::Shape shape = linear_shape(context);
  const ir::Dim& n = shape.back();
  check_vector(context, o::bias, n);
  for (const std::size_t i : {+o::w_scale, +o::w_zero_point, +o::out_scale, +o::out_zero_point})
    check_vector(context, i, n, /*or_one_element=*/true);
  const ir::Dim rows = element_count(ir::Shape(shape.begin(), shape.end() - 1));
  const ir::Dim scales = element_count(context.shape(o::x_scale));
  if (scales != ir::Dim(1) && scales != rows)
    context.fail("{} is neither one scale nor one per row of {}", context.described(o::x_scale),
                 context.described(o::x));
  const ir::DType type = type_of_result(context, 0, o::out_scale);
  return {{type, std::move(shape)}};
}
std::vector<ir::Tensor> evaluate_linear_q(const EvaluateContext& context) {
  namespace o = operands::linear_q;
  const auto centred = [&](std::size_t value, std::size_t zero_point) {
    std::vector<std::int64_t> q = context.in(value).to_ints();
    if (!context.has(zero_point)) return q;
    const auto zeros = context.in(zero_point).to_ints();
    for (std::size_t i = 0; i < q.size(); ++i) q[i] -= zeros[i % zeros.size()];
    return q;
  };
  const ir::Tensor& w = context.in(o::w);
  const std::int64_t n = w.shape()[1];
  const auto sums = rows_times_columns(centred(o::x, o::x_zero_point),
                                       centred(o::w, o::w_zero_point), w.shape()[0], n);
  const auto x_scale = context.in(o::x_scale).to_doubles();
  const auto w_scale = context.in(o::w_scale).to_doubles();
  std::vector<double> y(sums.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<double>(sums[i]) *
           x_scale[x_scale.size() == 1 ? 0 : i / static_cast<std::size_t>(n)] *
           w_scale[i % w_scale.size()];
  add_bias_and_activate(context, y);
  return {result_of(context, 0, linear_sizes(context), y, o::out_scale, o::out_zero_point)};
}

}  // namespace

std::vector<OpDef> linear_ops() {
  const OperandConstraint x{types::bytes, 'A'};
  return {
      own_op(operands::linear::op, {{types::real_or_bf16}, {types::real}}, operands::linear::names,
             infer_linear, evaluate_linear,
             {.row_wise = true, .is_linear = true, .takes_activation = true}),
      own_op(operands::linear_q::op,
             {x, takes::i8, takes::real, takes::real, x, takes::real, takes::real, takes::bytes,
              takes::i8},
             operands::linear_q::names, infer_linear_q, evaluate_linear_q,
             {.row_wise = true,
              .is_linear = true,
              .takes_activation = true,
              .out_scale = operands::linear_q::out_scale}),
  };
}

}  // namespace bertcl::ops
