// SPDX-License-Identifier: Apache-2.0
// Quantization: Q/DQ pairs, integer products, and the fused forms of com.microsoft.
// QuantizeLinear and DequantizeLinear always have a zero point; per tensor it and the scale are
// scalars and there is no axis, per axis both are vectors.
#include <fmt/format.h>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

bool is_scalar(const ir::Value* value) {
  return ir::element_count(value->type.shape) == ir::Dim(1);
}

/// A scale or zero point of one element, as a tensor of rank 0.
ir::Value* as_scalar(NodeImport& node, ir::Value* value) {
  if (value->type.shape.empty()) return value;
  if (value->is_constant())
    return node.constant(value->constant->reshaped({}), value->name + "_scalar");
  return node.reshape(value, {});
}

ir::Value* zeros_like_scale(NodeImport& node, const ir::Value* scale, ir::DType dtype) {
  const auto sizes = ir::constant_shape(scale->type.shape);
  if (!sizes) node.fail("the number of scales is not constant");
  return node.constant(ir::Tensor::zeros(dtype, *sizes), "zero_point");
}

/// x, scale, zero point and axis in the one spelling.
void finish_linear(NodeImport& node, const char* op, ir::DType zero_type) {
  if (node.int_attribute("block_size", 0) != 0)
    node.fail("blocked quantization (block_size) is not supported; per tensor and per axis are");
  ir::Value* x = node.need(0);
  ir::Value* scale = node.need(1);
  ir::Value* zero = node.in(2);
  ir::Attributes attributes;
  if (is_scalar(scale) && (!zero || is_scalar(zero))) {
    scale = as_scalar(node, scale);
    if (zero) zero = as_scalar(node, zero);
  } else {
    const auto rank = static_cast<std::int64_t>(x->type.shape.size());
    const std::int64_t axis = node.int_attribute("axis", 1);
    if (axis < -rank || axis >= rank)
      node.fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
    attributes["axis"] = axis < 0 ? axis + rank : axis;
  }
  if (!zero) zero = zeros_like_scale(node, scale, zero_type);
  node.finish(op, {x, scale, zero}, std::move(attributes));
}

void import_quantize(NodeImport& node) {
  const auto type = static_cast<std::int32_t>(node.int_attribute("output_dtype", 0));
  finish_linear(node, "QuantizeLinear",
                type == 0 ? ir::DType::u8 : element_type(type, "attribute 'output_dtype'"));
}
void import_dequantize(NodeImport& node) {
  const auto type = static_cast<std::int32_t>(node.int_attribute("output_dtype", 0));
  if (type != 0 && element_type(type, "attribute 'output_dtype'") != node.need(1)->type.dtype)
    node.fail("an output_dtype other than the type of the scale is not supported");
  finish_linear(node, "DequantizeLinear", node.need(0)->type.dtype);
}

/// Float of an integer product: Cast, times both scales, plus the bias.
void finish_scaled(NodeImport& node, ir::Value* product, ir::Value* a_scale, ir::Value* b_scale,
                   ir::Value* bias) {
  ir::Value* number = node.cast(product, a_scale->type.dtype);
  ir::Value* scale = node.mul(a_scale, b_scale);
  if (!bias) return node.finish("Mul", {number, scale});
  node.finish("Add", {node.mul(number, scale), bias});
}

/// MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias)
void import_matmul_integer_to_float(NodeImport& node) {
  std::vector<ir::Value*> inputs{node.need(0), node.need(1), node.in(4), node.in(5)};
  while (!inputs.back()) inputs.pop_back();
  ir::Value* product = node.emit("MatMulInteger", std::move(inputs));
  finish_scaled(node, product, node.need(2), node.need(3), node.in(6));
}

/// DynamicQuantizeMatMul(a, b, b_scale, b_zero_point, bias)
void import_dynamic_quantize_matmul(NodeImport& node) {
  const auto a = node.emit_many("DynamicQuantizeLinear", {node.need(0)}, {}, 3);
  std::vector<ir::Value*> inputs{a[0], node.need(1), a[2]};
  if (node.in(3)) inputs.push_back(node.in(3));
  ir::Value* product = node.emit("MatMulInteger", std::move(inputs));
  finish_scaled(node, product, a[1], node.need(2), node.in(4));
}

/// Operand `first` and the scale and zero point behind it, as a real tensor.
ir::Value* dequantized(NodeImport& node, std::size_t first) {
  ir::Value* x = node.need(first);
  ir::Value* scale = as_scalar(node, node.need(first + 1));
  ir::Value* zero = node.in(first + 2);
  zero = zero ? as_scalar(node, zero) : zeros_like_scale(node, scale, x->type.dtype);
  return node.emit("DequantizeLinear", {x, scale, zero});
}

/// QLinearAdd and QLinearMul (a, a_scale, a_zero_point, b, b_scale, b_zero_point, c_scale,
/// c_zero_point): the operator on real numbers between DequantizeLinear and QuantizeLinear.
void finish_qlinear(NodeImport& node, const char* op) {
  ir::Value* real = node.emit(op, {dequantized(node, 0), dequantized(node, 3)});
  ir::Value* scale = as_scalar(node, node.need(6));
  ir::Value* zero = node.in(7);
  zero = zero ? as_scalar(node, zero) : zeros_like_scale(node, scale, node.need(0)->type.dtype);
  node.finish("QuantizeLinear", {real, scale, zero});
}
void import_qlinear_add(NodeImport& node) { finish_qlinear(node, "Add"); }
void import_qlinear_mul(NodeImport& node) { finish_qlinear(node, "Mul"); }

void import_dynamic_quantize(NodeImport& node) {
  node.finish_all("DynamicQuantizeLinear", {node.need(0)});
}

}  // namespace

Rules quantize_rules() {
  const Rule quantize{import_quantize, {"axis", "saturate", "block_size", "output_dtype"}};
  const Rule dequantize{import_dequantize, {"axis", "block_size", "output_dtype"}};
  return {
      {"QuantizeLinear", quantize},
      {"DequantizeLinear", dequantize},
      {"com.microsoft::QuantizeLinear", quantize},
      {"com.microsoft::DequantizeLinear", dequantize},
      {"DynamicQuantizeLinear", {import_dynamic_quantize, {}}},
      {"MatMulInteger", {import_same, {}}},
      {"QLinearMatMul", {import_same, {}}},
      {"com.microsoft::QLinearAdd", {import_qlinear_add, {}}},
      {"com.microsoft::QLinearMul", {import_qlinear_mul, {}}},
      {"com.microsoft::MatMulIntegerToFloat", {import_matmul_integer_to_float, {}}},
      {"com.microsoft::DynamicQuantizeMatMul", {import_dynamic_quantize_matmul, {}}},
  };
}

}  // namespace bertcl::onnx_io
