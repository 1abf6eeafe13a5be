// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication: MatMul, MatMulInteger, QLinearMatMul. Sums of floats are kept in double.
#include <fmt/format.h>

#include <algorithm>

#include "ops/quantization.hpp"
#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// The shape of a MatMul by NumPy's rule: vectors count as a row or a column, what stands before
/// the last two extents broadcasts.
ir::Shape matmul_shape(const InferContext& context, std::size_t a, std::size_t b) {
  ir::Shape left = context.shape(a), right = context.shape(b);
  if (left.empty() || right.empty()) context.fail("MatMul of scalars is not supported");
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  same_extent(context, left.back(), right[right.size() - 2],
              fmt::format("the inner extent of '{}' {} and '{}' {}", context.node.input(a)->name,
                          ir::str(context.shape(a)), context.node.input(b)->name,
                          ir::str(context.shape(b))));
  ir::Shape out =
      broadcast(context, {left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
  if (!row) out.push_back(left[left.size() - 2]);
  if (!column) out.push_back(right.back());
  return out;
}

/// C = A x B over broadcast batches, in the type Sum.
template <class Sum>
std::pair<ir::Sizes, std::vector<Sum>> multiply(const EvaluateContext& context, ir::Sizes left,
                                                const std::vector<Sum>& a, ir::Sizes right,
                                                const std::vector<Sum>& b) {
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  const std::int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  if (right[right.size() - 2] != k)
    context.fail("the inner extents are {} and {}", k, right[right.size() - 2]);
  const ir::Sizes left_batch(left.begin(), left.end() - 2);
  const ir::Sizes right_batch(right.begin(), right.end() - 2);
  const ir::Sizes batch = broadcast(context, left_batch, right_batch);
  ir::Sizes sizes = batch;
  if (!row) sizes.push_back(m);
  if (!column) sizes.push_back(n);
  std::vector<Sum> c(ir::element_count(batch) * m * n, Sum{});
  Sum* out = c.data();
  walk<2>(batch, {broadcast_strides(left_batch, batch), broadcast_strides(right_batch, batch)},
          [&](const auto& at) {
            const Sum* pa = a.data() + at[0] * m * k;
            const Sum* pb = b.data() + at[1] * k * n;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t p = 0; p < k; ++p)
                for (std::int64_t j = 0; j < n; ++j)
                  out[i * n + j] = plus(out[i * n + j], times(pa[i * k + p], pb[p * n + j]));
            out += m * n;
          });
  return {sizes, std::move(c)};
}

std::vector<ir::Type> infer_matmul(InferContext& context) {
  return {{context.type(0).dtype, matmul_shape(context, 0, 1)}};
}
std::vector<ir::Tensor> evaluate_matmul(const EvaluateContext& context) {
  const ir::Tensor &a = context.in(0), &b = context.in(1);
  if (ir::is_float(a.dtype())) {
    auto [sizes, c] =
        multiply<double>(context, a.shape(), a.to_doubles(), b.shape(), b.to_doubles());
    return {ir::Tensor::of<double>(sizes, std::move(c)).converted(a.dtype())};
  }
  auto [sizes, c] = multiply<std::int64_t>(context, a.shape(), a.to_ints(), b.shape(), b.to_ints());
  return {ir::Tensor::of<std::int64_t>(sizes, std::move(c)).converted(a.dtype())};
}

/// Elements minus their zero point: one for all, or one for each index of `axis`.
std::vector<std::int64_t> centred(const EvaluateContext& context, std::size_t operand,
                                  std::size_t zero_point, std::int64_t axis_from_end) {
  const ir::Tensor& x = context.in(operand);
  std::vector<std::int64_t> out = x.to_ints();
  if (!context.has(zero_point)) return out;
  const auto zero = context.in(zero_point).to_ints();
  std::int64_t extent = 1, stride = 1;
  if (zero.size() > 1) {
    const auto axis = std::ssize(x.shape()) - axis_from_end;
    if (axis < 0 || x.shape()[axis] != std::ssize(zero))
      context.fail("the number of zero points differs from the extent of their axis");
    extent = x.shape()[axis];
    stride = dense_strides(x.shape())[axis];
  }
  if (zero.empty()) context.fail("the zero point is empty");
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] -= zero[static_cast<std::int64_t>(i) / stride % extent];
  return out;
}

void check_quantized(const InferContext& context, std::size_t operand, std::size_t zero_point,
                     std::size_t axis_from_end) {
  const ir::Type& type = context.type(operand);
  if (!context.has(zero_point)) return;
  const ir::Type& zero = context.type(zero_point);
  const ir::Dim n = ir::element_count(zero.shape);
  const bool ranks =
      n == ir::Dim(1) || (zero.shape.size() == 1 && type.shape.size() >= axis_from_end);
  if (ranks && n != ir::Dim(1))
    same_extent(
        context, type.shape[type.shape.size() - axis_from_end], n,
        fmt::format("the number of zero points '{}'", context.node.input(zero_point)->name));
  if (!ranks)
    context.fail("zero point '{}' {} does not match '{}' {}", context.node.input(zero_point)->name,
                 ir::str(zero), context.node.input(operand)->name, ir::str(type));
}

/// MatMulInteger(a, b, a_zero_point, b_zero_point): a by rows, b by columns.
std::vector<ir::Type> infer_matmul_integer(InferContext& context) {
  check_quantized(context, 0, 2, 2);
  check_quantized(context, 1, 3, 1);
  return {{ir::DType::i32, matmul_shape(context, 0, 1)}};
}
std::vector<ir::Tensor> evaluate_matmul_integer(const EvaluateContext& context) {
  auto [sizes, c] =
      multiply<std::int64_t>(context, context.in(0).shape(), centred(context, 0, 2, 2),
                             context.in(1).shape(), centred(context, 1, 3, 1));
  return {ir::Tensor::of<std::int64_t>(sizes, std::move(c)).converted(ir::DType::i32)};
}

/// QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
std::vector<ir::Type> infer_qlinear_matmul(InferContext& context) {
  check_quantized(context, 0, 2, 2);
  check_quantized(context, 3, 5, 1);
  return {{context.type(7).dtype, matmul_shape(context, 0, 3)}};
}
std::vector<ir::Tensor> evaluate_qlinear_matmul(const EvaluateContext& context) {
  auto [sizes, c] =
      multiply<std::int64_t>(context, context.in(0).shape(), centred(context, 0, 2, 2),
                             context.in(3).shape(), centred(context, 3, 5, 1));
  const auto a_scale = context.in(1).to_doubles(), b_scale = context.in(4).to_doubles();
  const auto y_scale = static_cast<float>(context.in(6).to_doubles().at(0));
  const std::int64_t zero = context.in(7).to_ints().at(0);
  const std::int64_t n = context.in(3).shape().size() == 1 ? 1 : context.in(3).shape().back();
  const std::int64_t m = context.in(0).shape().size() == 1 ? 1 : *(context.in(0).shape().end() - 2);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double a = a_scale.size() == 1 ? a_scale[0] : a_scale.at(at / n % m);
    const double b = b_scale.size() == 1 ? b_scale[0] : b_scale.at(at % n);
    const float scale = static_cast<float>(a) * static_cast<float>(b) / y_scale;
    c[i] = quantize_scaled(static_cast<float>(c[i]) * scale, zero, context.in(7).dtype());
  }
  return {ir::Tensor::of<std::int64_t>(sizes, std::move(c)).converted(context.in(7).dtype())};
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  const Traits matmul{.mixed_axes = [](const ir::Node&) { return std::vector<std::int64_t>{-1}; }};
  return {
      op("MatMul", 2, 2, {{types::sums, 'T'}}, infer_matmul, evaluate_matmul, nullptr, matmul),
      op("MatMulInteger", 2, 4,
         {{types::bytes, 'A'}, {types::bytes, 'B'}, {types::bytes, 'A'}, {types::bytes, 'B'}},
         infer_matmul_integer, evaluate_matmul_integer, nullptr, matmul),
      op("QLinearMatMul", 8, 8,
         {{types::bytes, 'A'},
          {types::scales},
          {types::bytes, 'A'},
          {types::bytes, 'B'},
          {types::scales},
          {types::bytes, 'B'},
          {types::scales},
          {types::bytes}},
         infer_qlinear_matmul, evaluate_qlinear_matmul),
  };
}

}  // namespace bertcl::ops
