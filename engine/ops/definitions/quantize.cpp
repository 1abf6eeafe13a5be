// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear; quantize_rows, and observe, which shows
// calibration a value.
#include <algorithm>
#include <cmath>

#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/quantization.hpp"
#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// Scale and zero point are scalars, or vectors along `axis`.
void check_parameters(const InferContext& context) {
  const ir::Type& x = context.type(0);
  const ir::Type& scale = context.type(1);
  if (context.node.int_attribute("block_size", 0) != 0)
    context.fail(
        "blocked quantization (block_size) is not supported; use per-tensor or per-axis scales");
  if (ir::element_count(scale.shape) != ir::Dim(1)) {
    const auto axis = context.axis("axis", 1, x.shape.size());
    if (scale.shape.size() != 1 || scale.shape[0] != x.shape[axis])
      context.fail("scale '{}' {} does not match axis {} of '{}' {}", context.node.input(1)->name,
                   ir::str(scale), axis, context.node.input(0)->name, ir::str(x));
  }
  if (!context.has(2)) return;
  const ir::Type& zero = context.type(2);
  const bool scalars =
      ir::element_count(scale.shape) == ir::Dim(1) && ir::element_count(zero.shape) == ir::Dim(1);
  if (zero.shape != scale.shape && !scalars)
    context.fail("zero point '{}' {} does not have the shape of scale '{}' {}",
                 context.node.input(2)->name, ir::str(zero), context.node.input(1)->name,
                 ir::str(scale));
}

/// The number of the scale that belongs to each element.
struct ScaleIndex {
  std::int64_t extent = 1, stride = 1;
  std::size_t operator()(std::size_t i) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(i) / stride % extent);
  }
};
ScaleIndex scale_index(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  if (context.in(1).size() == 1) return {};
  const auto axis = context.axis("axis", 1, x.shape().size());
  if (context.in(1).size() != x.shape()[axis])
    context.fail("the number of scales differs from the extent of the axis");
  return {x.shape()[axis], dense_strides(x.shape())[axis]};
}

/// The type of the result: that of the zero point, else u8.
ir::DType quantized_type(const ir::Node& node) {
  return node.input(2) ? node.input(2)->type.dtype : ir::DType::u8;
}
std::vector<ir::Type> infer_quantize(InferContext& context) {
  const ir::Type result{quantized_type(context.node), context.shape(0)};
  check_parameters(context);
  return {result};
}
std::vector<ir::Tensor> evaluate_quantize(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const ir::DType type = quantized_type(context.node);
  const Elements<float> in(x), scale(context.in(1));
  const ScaleIndex at = scale_index(context);
  const auto zero =
      context.has(2) ? context.in(2).to_ints() : std::vector<std::int64_t>(context.in(1).size(), 0);
  std::vector<std::int64_t> out(x.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = quantize_scaled(in[static_cast<std::int64_t>(i)] / scale[at(i)], zero.at(at(i)), type);
  return {ir::Tensor::of<std::int64_t>(x.shape(), std::move(out)).converted(type)};
}

std::vector<ir::Type> infer_dequantize(InferContext& context) {
  const ir::Type& x = context.type(0);
  check_parameters(context);
  return {{context.type(1).dtype, x.shape}};
}
std::vector<ir::Tensor> evaluate_dequantize(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const Elements<float> scale(context.in(1));
  const Elements<std::int64_t> in(x);
  const ScaleIndex at = scale_index(context);
  const auto zero =
      context.has(2) ? context.in(2).to_ints() : std::vector<std::int64_t>(context.in(1).size(), 0);
  std::vector<float> out(x.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(in[static_cast<std::int64_t>(i)] - zero.at(at(i))) * scale[at(i)];
  return {make_tensor<float>(x.shape(), std::move(out), context.in(1).dtype())};
}

/// y, y_scale, y_zero_point = DynamicQuantizeLinear(x): the range of x widened to hold 0.
std::vector<ir::Type> infer_dynamic(InferContext& context) {
  return {{ir::DType::u8, context.shape(0)}, {ir::DType::f32, {}}, {ir::DType::u8, {}}};
}
std::vector<ir::Tensor> evaluate_dynamic(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto in = x.as<float>();
  float low = 0, high = 0;
  for (const float v : in) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const std::int64_t zero = quantize_scaled(0.0f - low / scale, 0, ir::DType::u8);
  std::vector<std::int64_t> out;
  for (const float v : in) out.push_back(quantize_scaled(v / scale, zero, ir::DType::u8));
  return {ir::Tensor::of<std::int64_t>(x.shape(), std::move(out)).converted(ir::DType::u8),
          ir::Tensor::scalar(scale), ir::Tensor::scalar(static_cast<std::uint8_t>(zero))};
}

std::vector<ir::Type> infer_quantize_rows(InferContext& context) {
  const ir::DType type = context.node.output()->type.dtype;
  if (!ir::is_int8(type) || context.shape(0).empty())
    context.fail("cannot quantize rows of {} to {}", context.described(0), ir::name_of(type));
  ir::Shape scales = context.shape(0);
  scales.back() = ir::Dim(1);
  return {{type, context.shape(0)}, {ir::DType::f32, std::move(scales)}};
}
std::vector<ir::Tensor> evaluate_quantize_rows(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const ir::DType type = context.node.output()->type.dtype;
  const auto least = static_cast<float>(context.node.float_attribute("least"));
  const std::int64_t zero = type == ir::DType::u8 ? 128 : 0;
  ir::Sizes rows = x.shape();
  const auto n = static_cast<std::size_t>(rows.back());
  rows.back() = 1;
  const auto in = x.as<float>();
  std::vector<float> scales;
  std::vector<std::int64_t> q;
  for (std::size_t row = 0; n > 0 && row < in.size(); row += n) {
    float largest = 0.0f;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(in[row + i]));
    scales.push_back(std::max(largest, least) / 127.0f);
    for (std::size_t i = 0; i < n; ++i)
      q.push_back(quantize_scaled(in[row + i] / scales.back(), zero, type));
  }
  return {make_tensor<std::int64_t>(x.shape(), std::move(q), type),
          ir::Tensor::of(rows, std::move(scales))};
}

std::vector<ir::Type> infer_observe(InferContext&) { return {}; }
std::vector<ir::Tensor> evaluate_observe(const EvaluateContext&) { return {}; }

}  // namespace

std::vector<OpDef> quantize_ops() {
  return {
      op("QuantizeLinear", 2, 3,
         {{types::scales},
          {types::scales},
          {TypeSet{ir::DType::i8, ir::DType::u8, ir::DType::i16, ir::DType::u16}}},
         infer_quantize, evaluate_quantize, nullptr, {.row_wise = true, .by_element = true}),
      op("DequantizeLinear", 2, 3,
         {{TypeSet{ir::DType::i8, ir::DType::u8, ir::DType::i16, ir::DType::u16, ir::DType::i32},
           'T'},
          {types::scales},
          {types::all, 'T'}},
         infer_dequantize, evaluate_dequantize, nullptr, {.row_wise = true, .by_element = true}),
      op("DynamicQuantizeLinear", 1, 1, {{TypeSet{ir::DType::f32}}}, infer_dynamic,
         evaluate_dynamic, nullptr, {.by_element = true}),
      own_op(operands::quantize_rows::op, {{types::real}}, operands::quantize_rows::names,
             infer_quantize_rows, evaluate_quantize_rows, {.row_wise = true}),
      own_op(operands::observe::op, {{types::all}}, operands::observe::names, infer_observe,
             evaluate_observe),
  };
}

}  // namespace bertcl::ops
