// SPDX-License-Identifier: Apache-2.0
// Quantization: Q/DQ pairs, int8 GEMMs, and the fused forms of com.microsoft.
// QuantizeLinear and DequantizeLinear always have a zero point; per tensor it and the scale are
// scalars and there is no axis, per axis both are vectors.
#include <cmath>
#include <string_view>

#include "onnx/block_weights.hpp"
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

constexpr std::int64_t kMaxScales = 1 << 24;

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
  if (ir::element_count(*sizes) > kMaxScales)
    node.fail("{} scales, at most {} are supported", ir::element_count(*sizes), kMaxScales);
  return node.constant(ir::Tensor::zeros(dtype, *sizes), "zero_point");
}

void check_operand_count(NodeImport& node, std::size_t most) {
  if (node.input_count() > most)
    node.fail("got {} operands, expected at most {}", node.input_count(), most);
}

/// Where a rule casts an operand, no later inference would see what it was.
void check_integers(NodeImport& node, const ir::Value* x) {
  if (ir::is_float(x->type.dtype) || x->type.dtype == ir::DType::boolean)
    node.fail("operand '{}' is {}, expected quantized integers", x->name, ir::str(x->type));
}

/// (x - zero point) * scale by elements, where scale and zero point broadcast to x.
ir::Value* dequantized_elements(NodeImport& node, ir::Value* x, ir::Value* scale, ir::Value* zero) {
  check_integers(node, x);
  if (zero) check_integers(node, zero);
  ir::Value* number = node.cast(x, scale->type.dtype);
  if (zero) number = node.emit("Sub", {number, node.cast(zero, scale->type.dtype)});
  return node.mul(number, scale);
}
/// saturate(round(x / scale) + zero point) by elements.
ir::Value* quantized_elements(NodeImport& node, ir::Value* x, ir::Value* scale, ir::Value* zero,
                              ir::DType type) {
  if (!ir::is_int8(type))
    node.fail("quantizing to {} with per-element scales is not supported (supported: i8, u8)",
              ir::name_of(type));
  const ir::DType real = scale->type.dtype;
  if (!ir::is_float(x->type.dtype) && x->type.dtype != ir::DType::i32)
    node.fail("operand '{}' is {}, expected a float type or i32", x->name, ir::str(x->type));
  ir::Value* steps = node.emit("Round", {node.emit("Div", {node.cast(x, real), scale})});
  if (zero) steps = node.add(steps, node.cast(zero, real));
  const double low = type == ir::DType::u8 ? 0 : -128;
  steps = node.emit("Max", {steps, node.scalar(low, real)});
  return node.cast(node.emit("Min", {steps, node.scalar(low + 255, real)}), type);
}

/// Steps are above 0; a scale of 0 is that of weights that are all 0, and makes nothing else of
/// them. Quantizers of blocks also write negative ones, so that the lowest integer is used.
void check_scale(NodeImport& node, const ir::Value* scale, bool quantizes, bool blocked) {
  if (!scale->is_constant() || !ir::is_float(scale->constant->dtype())) return;
  const char* expected = quantizes ? " above 0" : blocked ? "" : " of at least 0";
  const std::vector<double> values = scale->constant->to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) || (values[i] < 0 && (quantizes || !blocked)) ||
        (quantizes && values[i] == 0))
      node.fail(
          "scale '{}' is {} at element {}, expected a finite number{}{}", scale->name, values[i], i,
          expected,
          quantizes && std::isinf(values[i])
              ? "; exclude the mask, which holds -inf, from quantization (Where, Add, Softmax)"
              : "");
}

/// DequantizeLinear of a constant in blocks is a constant of floats.
bool finish_constant_blocks(NodeImport& node, std::int64_t axis, std::int64_t block) {
  const ir::Value *x = node.input(0), *scale = node.input(1), *zero = node.optional_input(2);
  if (!x->is_constant() || !ir::is_int8(x->type.dtype) || !scale->is_constant() ||
      !ir::is_float(scale->type.dtype) || (zero && !zero->is_constant()))
    return false;
  node.importer().take_memory(x->constant->size(), scale->type.dtype);
  std::optional<ir::Tensor> zeros;
  if (zero) zeros = *zero->constant;
  node.set_output(0, node.constant(dequantized(BlockedTensor{*x->constant, axis, block,
                                                             *scale->constant, std::move(zeros)}),
                                   "weight"));
  return true;
}

/// Blocked quantization (opset 21): one scale for each `block` neighbours along the axis, the last
/// block may be shorter.
void finish_blocked(NodeImport& node, bool quantizes, std::int64_t block, ir::DType zero_type) {
  ir::Value* x = node.input(0);
  if (block < 1) node.fail("block_size {} is less than 1", block);
  const std::int64_t axis = node.axis(1);
  const ir::Dim extent = x->type.shape[axis];
  if (!extent.is_constant()) node.fail("the extent of the blocked axis is not constant");
  ir::Shape expected = x->type.shape;
  expected[axis] = extent.constant() / block + (extent.constant() % block != 0);
  for (const ir::Value* v : {node.input(1), node.optional_input(2)})
    if (v && v->type.shape != expected)
      node.fail("'{}' is {}, but blocks of {} along axis {} of {} need shape {}", v->name,
                ir::str(v->type), block, axis, ir::str(x->type), ir::str(expected));
  if (const ir::Value* zero = node.optional_input(2);
      zero && !quantizes && zero->type.dtype != x->type.dtype)
    node.fail("zero point '{}' {} does not have the type of '{}' {}", zero->name,
              ir::str(zero->type), x->name, ir::str(x->type));
  if (!quantizes && finish_constant_blocks(node, axis, block)) return;
  if (extent.constant() > kMaxScales)
    node.fail("the blocked axis has {} elements, at most {} are supported", extent.constant(),
              kMaxScales);
  std::vector<std::int64_t> block_of(extent.constant());
  for (std::size_t i = 0; i < block_of.size(); ++i)
    block_of[i] = static_cast<std::int64_t>(i) / block;
  ir::Value* blocks = node.constant(ir::Tensor::of({extent.constant()}, std::move(block_of)));
  const auto by_element = [&](ir::Value* v) {
    return v ? node.emit("Gather", {v, blocks}, {{"axis", axis}}) : v;
  };
  ir::Value *scale = by_element(node.input(1)), *zero = by_element(node.optional_input(2));
  node.set_output(
      0, quantizes ? quantized_elements(node, x, scale, zero, zero ? zero->type.dtype : zero_type)
                   : dequantized_elements(node, x, scale, zero));
}

/// x, scale, zero point and axis in the one spelling.
void finish_linear(NodeImport& node, const char* op, ir::DType zero_type) {
  const bool quantizes = op == std::string_view("QuantizeLinear");
  const std::int64_t block = node.int_attribute("block_size", 0);
  check_scale(node, node.input(1), quantizes, block != 0);
  if (block != 0) return finish_blocked(node, quantizes, block, zero_type);
  ir::Value* x = node.input(0);
  if (quantizes && x->type.dtype == ir::DType::i32) x = node.cast(x, ir::DType::f32);
  ir::Value* scale = node.input(1);
  ir::Value* zero = node.optional_input(2);
  ir::Attributes attributes;
  if (is_scalar(scale) && (!zero || is_scalar(zero))) {
    scale = as_scalar(node, scale);
    if (zero) zero = as_scalar(node, zero);
  } else {
    attributes["axis"] = node.axis(1);
  }
  if (!zero) zero = zeros_like_scale(node, scale, zero_type);
  node.emit_outputs(op, {x, scale, zero}, std::move(attributes));
}

void import_quantize(NodeImport& node) {
  check_operand_count(node, 3);
  const auto code = static_cast<std::int32_t>(node.int_attribute("output_dtype", 0));
  const ir::DType type = code == 0 ? ir::DType::u8 : element_type(code, "attribute 'output_dtype'");
  if (const ir::Value* zero = node.optional_input(2); zero && code != 0 && zero->type.dtype != type)
    node.fail("output_dtype {} contradicts the zero point '{}' {}", ir::name_of(type), zero->name,
              ir::str(zero->type));
  if (const auto precision = static_cast<std::int32_t>(node.int_attribute("precision", 0));
      precision != 0 && element_type(precision, "attribute 'precision'") != ir::DType::f32)
    node.fail("a division in a precision other than f32 is not supported");
  finish_linear(node, "QuantizeLinear", type);
}
void import_dequantize(NodeImport& node) {
  check_operand_count(node, 3);
  const auto type = static_cast<std::int32_t>(node.int_attribute("output_dtype", 0));
  if (type != 0 && element_type(type, "attribute 'output_dtype'") != node.input(1)->type.dtype)
    node.fail("an output_dtype other than the type of the scale is not supported");
  finish_linear(node, "DequantizeLinear", node.input(0)->type.dtype);
}

/// Float of a MatMulInteger: Cast, times both scales, plus the bias.
void finish_scaled(NodeImport& node, ir::Value* sums, ir::Value* a_scale, ir::Value* b_scale,
                   ir::Value* bias) {
  ir::Value* number = node.cast(sums, a_scale->type.dtype);
  ir::Value* scale = node.mul(a_scale, b_scale);
  if (!bias) return node.emit_outputs("Mul", {number, scale});
  node.emit_outputs("Add", {node.mul(number, scale), bias});
}

/// A matrix of constant zeros where rows or columns have zero points says the same as none.
ir::Value* unless_all_zero(ir::Value* zero) {
  if (!zero || !zero->is_constant() || zero->type.shape.size() < 2) return zero;
  for (const std::int64_t z : zero->constant->to_ints())
    if (z != 0) return zero;
  return nullptr;
}
void import_matmul_integer(NodeImport& node) {
  node.emit_outputs("MatMulInteger",
                    {node.input(0), node.input(1), unless_all_zero(node.optional_input(2)),
                     unless_all_zero(node.optional_input(3))});
}

/// `x` as a real tensor, by one scale and one zero point.
ir::Value* dequantized(NodeImport& node, ir::Value* x, ir::Value* scale, ir::Value* zero) {
  scale = as_scalar(node, scale);
  zero = zero ? as_scalar(node, zero) : zeros_like_scale(node, scale, x->type.dtype);
  return node.emit("DequantizeLinear", {x, scale, zero});
}

/// A MatMulIntegerToFloat of two computed operands by head, with constant scales: in the spelling
/// with DequantizeLinear attention is recognized.
bool is_matmul_of_heads(NodeImport& node) {
  for (const std::size_t x : {0u, 1u})
    if (node.input(x)->is_constant() || node.shape(x).size() != 4) return false;
  for (const std::size_t parameter : {2u, 3u, 4u, 5u})
    if (const ir::Value* v = node.optional_input(parameter)) {
      if (!v->is_constant() || !is_scalar(v)) return false;
    }
  return node.input(2)->type.dtype == ir::DType::f32;
}

/// MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias). Scales of the
/// columns of a stand inside the sum, so these become a float MatMul.
void import_matmul_integer_to_float(NodeImport& node) {
  const bool by_elements = !is_scalar(node.input(2));
  if (by_elements || is_matmul_of_heads(node)) {
    const auto real = [&](std::size_t i) {
      ir::Value *x = node.input(i), *scale = node.input(2 + i), *zero = node.optional_input(4 + i);
      return by_elements ? dequantized_elements(node, x, scale, zero)
                         : dequantized(node, x, scale, zero);
    };
    ir::Value* y = node.emit("MatMul", {real(0), real(1)});
    node.set_output(0, node.optional_input(6) ? node.add(y, node.optional_input(6)) : y);
    return;
  }
  ir::Value* sums = node.emit("MatMulInteger", {node.input(0), node.input(1),
                                                node.optional_input(4), node.optional_input(5)});
  finish_scaled(node, sums, node.input(2), node.input(3), node.optional_input(6));
}

/// DynamicQuantizeMatMul(a, b, b_scale, b_zero_point, bias)
void import_dynamic_quantize_matmul(NodeImport& node) {
  const auto a = node.emit_many("DynamicQuantizeLinear", {node.input(0)}, {}, 3);
  ir::Value* sums = node.emit("MatMulInteger", {a[0], node.input(1), a[2], node.optional_input(3)});
  finish_scaled(node, sums, a[1], node.input(2), node.optional_input(4));
}

/// Operand `first` and the scale and zero point after it, as a real tensor.
ir::Value* dequantized(NodeImport& node, std::size_t first) {
  return dequantized(node, node.input(first), node.input(first + 1),
                     node.optional_input(first + 2));
}

/// QLinearAdd and QLinearMul (a, a_scale, a_zero_point, b, b_scale, b_zero_point, c_scale,
/// c_zero_point): the operator on real numbers between DequantizeLinear and QuantizeLinear.
void finish_qlinear(NodeImport& node, const char* op) {
  ir::Value* real = node.emit(op, {dequantized(node, 0), dequantized(node, 3)});
  ir::Value* scale = as_scalar(node, node.input(6));
  ir::Value* zero = node.optional_input(7);
  zero = zero ? as_scalar(node, zero) : zeros_like_scale(node, scale, node.input(0)->type.dtype);
  node.emit_outputs("QuantizeLinear", {real, scale, zero});
}
void import_qlinear_add(NodeImport& node) { finish_qlinear(node, "Add"); }
void import_qlinear_mul(NodeImport& node) { finish_qlinear(node, "Mul"); }

/// QLinearMatMul whose scales differ by row within batches has no integer form here: a float MatMul
/// between DequantizeLinear and QuantizeLinear.
void import_qlinear_matmul(NodeImport& node) {
  if (node.shape(1).size() < 2 && node.shape(4).size() < 2) return import_same(node);
  ir::Value* a = dequantized_elements(node, node.input(0), node.input(1), node.optional_input(2));
  ir::Value* b = dequantized_elements(node, node.input(3), node.input(4), node.optional_input(5));
  ir::Value* zero = node.input(7);
  node.set_output(0, quantized_elements(node, node.emit("MatMul", {a, b}), node.input(6), zero,
                                        zero->type.dtype));
}

void import_dynamic_quantize(NodeImport& node) {
  if (node.input_count() > 1) node.fail("got {} operands, expected one", node.input_count());
  node.emit_all_outputs("DynamicQuantizeLinear", {node.input(0)}, {}, 3);
}

}  // namespace

Rules quantize_rules() {
  const Rule quantize{import_quantize,
                      {"axis", "saturate", "block_size", "output_dtype", "precision"}};
  const Rule dequantize{import_dequantize, {"axis", "block_size", "output_dtype"}};
  return {
      {"QuantizeLinear", quantize},
      {"DequantizeLinear", dequantize},
      {"com.microsoft::QuantizeLinear", quantize},
      {"com.microsoft::DequantizeLinear", dequantize},
      {"DynamicQuantizeLinear", {import_dynamic_quantize, {}}},
      {"MatMulInteger", {import_matmul_integer, {}}},
      {"QLinearMatMul", {import_qlinear_matmul, {}}},
      {"com.microsoft::QLinearAdd", {import_qlinear_add, {}}},
      {"com.microsoft::QLinearMul", {import_qlinear_mul, {}}},
      {"com.microsoft::MatMulIntegerToFloat", {import_matmul_integer_to_float, {}}},
      {"MatMulIntegerToFloat", {import_matmul_integer_to_float, {}}},  // as MIGraphX writes it
      {"com.microsoft::DynamicQuantizeMatMul", {import_dynamic_quantize_matmul, {}}},
  };
}

}  // namespace bertcl::onnx_io
