// SPDX-License-Identifier: Apache-2.0
// The QOrdered operators of com.microsoft, which onnxruntime's transformer optimizer writes: int8
// with f32 scales, no zero points, matrices in the orders of cuBLASLt. They become row-major
// matrices and Q/DQ pairs, and so what every other quantized file becomes.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "onnx/attention.hpp"
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

/// Orders of cuBLASLt as the attributes count them.
enum Order : std::int64_t { column = 0, row = 1, col32 = 2, col4_4r2_8c = 3, col32_2r_4r4 = 4 };

/// "2 (COL32)".
std::string str(std::int64_t order) {
  static constexpr const char* names[] = {"COL", "ROW", "COL32", "COL4_4R2_8C", "COL32_2R_4R4"};
  return fmt::format("{} ({})", order, names[order]);
}

ir::Dim part(NodeImport& node, const ir::Dim& extent, std::int64_t by, std::int64_t order) {
  const auto parts = ir::Dim::divide(extent, by);
  if (!parts)
    node.fail("order {} needs an extent divisible by {}, found {}", str(order), by, extent.str());
  return *parts;
}

/// How the bytes of a matrix of rows x columns lie, slowest first, and where each extent belongs:
/// those of the rows in their order, then those of the columns.
struct Layout {
  ir::Shape extents;
  std::vector<std::int64_t> perm;
};
Layout layout_of(NodeImport& node, std::int64_t order, const ir::Shape& shape) {
  if (shape.size() < 2) node.fail("order {} needs a matrix", order);
  const ir::Dim rows = shape[shape.size() - 2], cols = shape.back();
  const auto of_rows = [&](std::int64_t by) { return part(node, rows, by, order); };
  const auto of_cols = [&](std::int64_t by) { return part(node, cols, by, order); };
  switch (order) {
    case column:
      return {{cols, rows}, {1, 0}};
    case row:
      return {{rows, cols}, {0, 1}};
    case col32:  // panels of 32 columns, row-major inside
      return {{of_cols(32), rows, 32}, {1, 0, 2}};
    case col4_4r2_8c:  // tiles of 8 rows: even rows, then odd ones, by groups of 4 columns
      return {{of_cols(32), of_rows(8), 2, 8, 4, 4}, {1, 4, 2, 0, 3, 5}};
    case col32_2r_4r4:
      // Tiles of 32 rows: (((row % 8) / 2 * 4 + row / 8) * 2 + row % 2) * 32 + col.
      return {{of_cols(32), of_rows(32), 4, 4, 2, 32}, {1, 3, 2, 4, 0, 5}};
    default:
      node.fail("order {} is not supported (supported: 0 to 4)", order);
  }
}

/// The shape of `x` without its last two extents, then `extents`.
ir::Shape after_batches(const ir::Value* x, const ir::Shape& extents) {
  ir::Shape shape(x->type.shape.begin(), x->type.shape.end() - 2);
  shape.insert(shape.end(), extents.begin(), extents.end());
  return shape;
}
std::vector<std::int64_t> after_batches(std::size_t batches,
                                        const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < batches; ++i) all.push_back(static_cast<std::int64_t>(i));
  for (const std::int64_t axis : perm) all.push_back(axis + static_cast<std::int64_t>(batches));
  return all;
}

/// `x` [.., rows, columns], whose bytes lie in `order`, as a row-major tensor of the same shape.
ir::Value* to_rows(NodeImport& node, ir::Value* x, std::int64_t order) {
  const ir::Shape shape = x->type.shape;
  if (order == row) return x;
  const Layout layout = layout_of(node, order, shape);
  ir::Value* tiles = node.reshape(x, after_batches(x, layout.extents));
  return node.reshape(node.transpose(tiles, after_batches(shape.size() - 2, layout.perm)), shape);
}

/// The inverse of to_rows().
ir::Value* from_rows(NodeImport& node, ir::Value* x, std::int64_t order) {
  const ir::Shape shape = x->type.shape;
  if (order == row) return x;
  const Layout layout = layout_of(node, order, shape);
  ir::Shape ordered;
  std::vector<std::int64_t> inverse(layout.perm.size());
  for (std::size_t i = 0; i < layout.perm.size(); ++i) {
    ordered.push_back(layout.extents[layout.perm[i]]);
    inverse[layout.perm[i]] = static_cast<std::int64_t>(i);
  }
  ir::Value* tiles = node.reshape(x, after_batches(x, ordered));
  return node.reshape(node.transpose(tiles, after_batches(shape.size() - 2, inverse)), shape);
}

/// A weight [in, out]. In the tiled orders it was transposed first: the bytes are those of [out,
/// in].
ir::Value* weight_to_rows(NodeImport& node, ir::Value* weight, std::int64_t order) {
  const ir::Shape shape = weight->type.shape;
  if (order != col4_4r2_8c && order != col32_2r_4r4) return to_rows(node, weight, order);
  if (shape.size() != 2)
    node.fail("the weight '{}' is {}, expected a matrix", weight->name, ir::str(weight->type));
  return node.transpose_last_two(to_rows(node, node.reshape(weight, {shape[1], shape[0]}), order));
}

struct Scale {
  ir::Value *scale, *zero_point;
  ir::Attributes attributes;
};
/// A scale for the whole tensor, or one for each element of `axis`.
Scale scale_of(NodeImport& node, std::size_t operand, std::int64_t axis) {
  ir::Value* scale = node.input(operand);
  const auto sizes = ir::constant_shape(scale->type.shape);
  if (!sizes) node.fail("the number of scales '{}' is not constant", scale->name);
  if (ir::element_count(*sizes) == 1) {
    if (scale->is_constant()) scale = node.constant(scale->constant->reshaped({}), scale->name);
    if (!scale->type.shape.empty()) scale = node.reshape(scale, {});
    return {scale, node.scalar(0, ir::DType::i8), {}};
  }
  return {scale,
          node.constant(ir::Tensor::zeros(ir::DType::i8, *sizes), "zero_point"),
          {{"axis", axis}}};
}
ir::Value* dequantized(NodeImport& node, ir::Value* x, std::size_t scale, std::int64_t axis = -1) {
  const Scale s = scale_of(node, scale, axis);
  return node.emit("DequantizeLinear", {x, s.scale, s.zero_point}, s.attributes);
}
ir::Value* quantized(NodeImport& node, ir::Value* x, std::size_t scale) {
  const Scale s = scale_of(node, scale, -1);
  return node.emit("QuantizeLinear", {x, s.scale, s.zero_point}, s.attributes);
}

std::int64_t order(NodeImport& node, const char* attribute) {
  return node.int_attribute(attribute, row);
}

/// QuantizeWithOrder(x, scale)
void import_quantize_with_order(NodeImport& node) {
  ir::Value* x =
      node.cast(to_rows(node, node.input(0), order(node, "order_input")), ir::DType::f32);
  node.set_output(0, from_rows(node, quantized(node, x, 1), order(node, "order_output")));
}
/// DequantizeWithOrder(x, scale)
void import_dequantize_with_order(NodeImport& node) {
  ir::Value* x = to_rows(node, node.input(0), order(node, "order_input"));
  const ir::DType to =
      element_type(static_cast<std::int32_t>(node.int_attribute("to", 1)), "attribute 'to'");
  node.set_output(
      0, from_rows(node, node.cast(dequantized(node, x, 1), to), order(node, "order_output")));
}

/// QOrderedMatMul(A, scale_A, B, scale_B, scale_Y, bias, C, scale_C): Q(A B + bias + C). C and Y
/// lie as A does.
void import_matmul(NodeImport& node) {
  const std::int64_t order_a = order(node, "order_A"),
                     order_b = node.int_attribute("order_B", column);
  if (order(node, "order_Y") != order_a) node.fail("order_A and order_Y must be equal");
  ir::Value* a = dequantized(node, to_rows(node, node.input(0), order_a), 1);
  ir::Value* b = dequantized(node, weight_to_rows(node, node.input(2), order_b), 3, 1);
  ir::Value* y = node.emit("MatMul", {a, b});
  if (node.optional_input(5)) y = node.add(y, node.optional_input(5));
  if (node.optional_input(6))
    y = node.add(y, dequantized(node, to_rows(node, node.input(6), order_a), 7));
  node.set_output(0, from_rows(node, quantized(node, y, 4), order_a));
}

/// QOrderedGelu(X, scale_X, scale_Y): no element meets another, so the order does not matter.
void import_qordered_gelu(NodeImport& node) {
  if (order(node, "order_X") != order(node, "order_Y"))
    node.fail("order_X and order_Y must be equal");
  node.set_output(0, quantized(node, node.emit("Gelu", {dequantized(node, node.input(0), 1)}), 2));
}

/// QOrderedLayerNormalization(X, scale_X, gamma, beta, scale_Y)
void import_qordered_layer_norm(NodeImport& node) {
  const std::int64_t order_x = order(node, "order_X");
  if (order(node, "order_Y") != order_x) node.fail("order_X and order_Y must be equal");
  ir::Value* x = dequantized(node, to_rows(node, node.input(0), order_x), 1);
  std::vector<ir::Value*> operands{x, node.cast(node.input(2), ir::DType::f32)};
  if (node.optional_input(3)) operands.push_back(node.cast(node.optional_input(3), ir::DType::f32));
  ir::Value* y = node.emit("LayerNormalization", std::move(operands),
                           {{"axis", node.int_attribute("axis", -1)},
                            {"epsilon", node.float_attribute("epsilon", 1e-5)}});
  node.set_output(0, from_rows(node, quantized(node, y, 4), order_x));
}

/// QOrderedAttention(input, scale_input, scales of Q, K and V, their weights, scales of the
/// weights, biases, scale of Q K', scale of the probabilities, scale of the result, mask). Scores
/// are quantized before they are divided by the root of the head's size.
void import_qordered_attention(NodeImport& node) {
  for (const std::size_t i : {18u, 19u})
    if (node.optional_input(i)) node.fail("operand {} (past or relative bias) is not supported", i);
  const std::int64_t heads = node.int_attribute("num_heads", 0);
  if (heads <= 0) node.fail("attribute 'num_heads' is missing");
  if (node.int_attribute("unidirectional", 0)) node.fail("unidirectional is not supported");
  const std::int64_t order_weight = node.int_attribute("order_weight", column);
  ir::Value* x = dequantized(node, to_rows(node, node.input(0), order(node, "order_input")), 1);
  std::array<ir::Value*, 3> qkv{};
  for (std::size_t i = 0; i < 3; ++i) {
    ir::Value* weight = weight_to_rows(node, node.input(5 + i), order_weight);
    ir::Value* y = node.emit("MatMul", {x, dequantized(node, weight, 8 + i, 1)});
    y = dequantized(node, quantized(node, node.add(y, node.input(11 + i)), 2 + i), 2 + i);
    qkv[i] = split_heads(node, y, heads);
  }
  const ir::Shape q = qkv[0]->type.shape;
  if (!q.back().is_constant()) node.fail("the head size is not constant");
  ir::Value* scores = node.emit("MatMul", {qkv[0], node.transpose_last_two(qkv[1])});
  scores = dequantized(node, quantized(node, scores, 14), 14);
  const double root = std::sqrt(static_cast<double>(q.back().constant()));
  scores = node.emit("Div", {scores, node.scalar(root, ir::DType::f32)});
  if (ir::Value* mask = node.optional_input(17))
    scores = node.add(scores, padding_mask(node, mask, q[0], q[2], q[2], kMaskedScore));
  ir::Value* weights = node.emit("Softmax", {scores}, {{"axis", -1}});
  weights = dequantized(node, quantized(node, weights, 15), 15);
  ir::Value* mixed = node.emit("MatMul", {weights, qkv[2]});
  mixed = dequantized(node, quantized(node, mixed, 16), 16);
  mixed = node.transpose(mixed, {0, 2, 1, 3});
  const ir::Shape m = mixed->type.shape;
  ir::Value* y = quantized(node, node.reshape(mixed, {m[0], m[1], m[2] * m[3]}), 16);
  node.set_output(0, from_rows(node, y, order(node, "order_output")));
}

}  // namespace

Rules qordered_rules() {
  return {
      {"com.microsoft::QuantizeWithOrder",
       {import_quantize_with_order, {"order_input", "order_output"}}},
      {"com.microsoft::DequantizeWithOrder",
       {import_dequantize_with_order, {"order_input", "order_output", "to"}}},
      {"com.microsoft::QOrderedMatMul", {import_matmul, {"order_A", "order_B", "order_Y"}}},
      {"com.microsoft::QOrderedGelu", {import_qordered_gelu, {"order_X", "order_Y"}}},
      {"com.microsoft::QOrderedLayerNormalization",
       {import_qordered_layer_norm, {"axis", "epsilon", "order_X", "order_Y"}}},
      {"com.microsoft::QOrderedAttention",
       {import_qordered_attention,
        {"num_heads", "unidirectional", "qkv_hidden_sizes", "order_input", "order_weight",
         "order_output"}}},
  };
}

}  // namespace bertcl::onnx_io
