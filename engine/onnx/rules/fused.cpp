// SPDX-License-Identifier: Apache-2.0
// Fused operators of com.microsoft, decomposed again: GELUs, SkipLayerNormalization and
// SkipSimplifiedLayerNormalization, EmbedLayerNormalization. The compiler then fuses them as it
// does every other spelling.
#include <array>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

void import_bias_gelu(NodeImport& node) {
  node.emit_outputs("Gelu", {node.add(node.input(0), node.input(1))});
}
void import_fast_gelu(NodeImport& node) {
  ir::Value* x = node.input(0);
  if (node.optional_input(1)) x = node.add(x, node.optional_input(1));
  node.emit_outputs("Gelu", {x}, {{"approximate", "tanh"}});
}
/// GemmFastGelu(x, w, bias): FastGelu(x w + bias)
void import_gemm_fast_gelu(NodeImport& node) {
  ir::Value* x = node.emit("MatMul", {node.input(0), node.input(1)});
  if (node.optional_input(2)) x = node.add(x, node.optional_input(2));
  node.emit_outputs("Gelu", {x}, {{"approximate", "tanh"}});
}
/// QuickGelu: x * sigmoid(alpha * x)
void import_quick_gelu(NodeImport& node) {
  ir::Value* x = node.input(0);
  ir::Value* alpha = node.scalar(node.float_attribute("alpha", 1.702), x->type.dtype);
  node.emit_outputs("Mul", {x, node.emit("Sigmoid", {node.mul(x, alpha)})});
}

/// Outputs 1 and 2, f32: the mean of each row of `x` and 1 / sqrt(variance + epsilon).
void bind_statistics(NodeImport& node, ir::Value* x, double epsilon) {
  const ir::Attributes rows{{"axes", std::vector<std::int64_t>{-1 + std::ssize(x->type.shape)}},
                            {"keepdims", 1}};
  x = node.cast(x, ir::DType::f32);
  ir::Value* mean = node.emit("ReduceMean", {x}, rows);
  ir::Value* centred = node.emit("Sub", {x, mean});
  ir::Value* variance = node.emit("ReduceMean", {node.mul(centred, centred)}, rows);
  ir::Value* deviation =
      node.emit("Sqrt", {node.add(variance, node.scalar(epsilon, ir::DType::f32))});
  node.set_output(1, mean);
  node.set_output(2, node.emit("Reciprocal", {deviation}));
}

/// SkipLayerNormalization(input, skip, gamma, beta, bias), or with `rms` that of
/// SkipSimplifiedLayerNormalization(input, skip, gamma, bias); output 3 is the sum.
void import_skip_norm(NodeImport& node, bool rms) {
  ir::Value* input = node.input(0);
  ir::Value* skip = node.input(1);
  const ir::Shape& shape = input->type.shape;
  const ir::Shape& with = skip->type.shape;
  if ((shape.size() != 3 && shape.size() != 2) || with.size() > shape.size())
    node.fail("input {} and skip {} do not match", ir::str(shape), ir::str(with));
  const std::size_t bias = rms ? 3 : 4;
  for (std::size_t i = 2; i <= bias; ++i)
    if (node.optional_input(i) && (node.shape(i).size() != 1 || node.shape(i)[0] != shape.back()))
      node.fail("operand {} '{}' is {}, expected a vector of the hidden size {}", i,
                node.optional_input(i)->name, ir::str(node.shape(i)), shape.back().str());
  ir::Value* sum = node.add(input, skip);
  if (sum->type.shape != shape)
    node.fail("skip {} cannot be broadcast to input {}", ir::str(with), ir::str(shape));
  if (node.optional_input(bias)) sum = node.add(sum, node.optional_input(bias));
  node.set_output(0,
                  node.emit(rms ? "RMSNormalization" : "LayerNormalization",
                            {sum, node.input(2), rms ? nullptr : node.optional_input(3)},
                            {{"axis", -1}, {"epsilon", node.float_attribute("epsilon", 1e-12)}}));
  const auto uses = [&](int i) {
    return i < node.proto().output_size() && node.importer().is_used(node.proto().output(i));
  };
  if (rms && (uses(1) || uses(2))) node.fail("the outputs mean and inv_std_var are not supported");
  if (uses(1) || uses(2)) bind_statistics(node, sum, node.float_attribute("epsilon", 1e-12));
  node.set_output(3, sum);
}

void import_skip_layer_norm(NodeImport& node) { import_skip_norm(node, false); }
void import_skip_rms_norm(NodeImport& node) { import_skip_norm(node, true); }

/// Operand 2 to 6 of an embedding, with scale and zero point where it is stored in 8 bits.
struct Table {
  ir::Value* values = nullptr;
  ir::Value* scale = nullptr;
  ir::Value* zero = nullptr;

  ir::Value* real(NodeImport& node, ir::Value* part) const {
    return scale ? node.emit("DequantizeLinear", {part, scale, zero}) : part;
  }
  ir::Value* rows(NodeImport& node, ir::Value* ids) const {
    return real(node, node.emit("Gather", {values, ids}, {{"axis", 0}}));
  }
};

/// The LayerNormalization of the sum of the embeddings. `tables` are words, positions, segments
/// (read where there are token types), gamma and beta.
void embed_layer_norm(NodeImport& node, const std::array<Table, 5>& tables, ir::Value* positions,
                      ir::Value* mask) {
  ir::Value* ids = node.input(0);
  if (ids->type.shape.size() != 2) node.fail("input_ids must be [batch, seq]");
  ir::Value* sum = tables[0].rows(node, ids);
  if (!positions) positions = node.range(ids->type.shape[1]);
  sum = node.add(sum, tables[1].rows(node, positions));
  if (node.optional_input(1)) sum = node.add(sum, tables[2].rows(node, node.optional_input(1)));
  ir::Value* gamma = tables[3].real(node, tables[3].values);
  ir::Value* beta = tables[4].real(node, tables[4].values);
  node.set_output(0,
                  node.emit("LayerNormalization", {sum, gamma, beta},
                            {{"axis", -1}, {"epsilon", node.float_attribute("epsilon", 1e-12)}}));
  if (mask)
    node.set_output(1, node.emit("ReduceSum", {node.cast(mask, ir::DType::i32)},
                                 {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 0}}));
  else
    node.set_output(1, node.emit_typed("Expand", {node.scalar(0, ir::DType::i32)},
                                       {ir::DType::i32, {ids->type.shape[0]}}));
  node.set_output(2, sum);
}

/// EmbedLayerNormalization(input_ids, segment_ids, words, positions, segments, gamma, beta, mask,
/// position_ids); output 1 is the number of tokens of each sequence, output 2 the sum.
void import_embed_layer_norm(NodeImport& node) {
  std::array<Table, 5> tables;
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (i != 2 || node.optional_input(1)) tables[i].values = node.input(i + 2);
  embed_layer_norm(node, tables, node.optional_input(8), node.optional_input(7));
}

/// QEmbedLayerNormalization: the same with operands 2 to 6 in 8 bits; operand 7 is the mask, 8 to
/// 12 are their scales, 13 to 17 their zero points.
void import_quantized_embed_layer_norm(NodeImport& node) {
  const auto scalar = [&](std::size_t operand) {
    ir::Value* v = node.input(operand);
    if (!v->is_constant() || v->constant->size() != 1)
      node.fail("operand {} '{}' is {}, expected a constant with one element", operand, v->name,
                ir::str(v->type));
    return v->type.shape.empty() ? v : node.constant(v->constant->reshaped({}), v->name);
  };
  std::array<Table, 5> tables;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (i == 2 && !node.optional_input(1)) continue;
    tables[i] = {node.input(i + 2), scalar(i + 8), scalar(i + 13)};
    if (tables[i].zero->type.dtype != tables[i].values->type.dtype)
      node.fail("operand {} '{}' {} does not have the type of its values {}", i + 13,
                tables[i].zero->name, ir::str(tables[i].zero->type),
                ir::str(tables[i].values->type));
  }
  embed_layer_norm(node, tables, nullptr, node.optional_input(7));
}

void import_gelu(NodeImport& node) { node.emit_outputs("Gelu", {node.input(0)}); }

}  // namespace

Rules fused_rules() {
  return {
      {"com.microsoft::Gelu", {import_gelu, {}}},
      {"com.microsoft::BiasGelu", {import_bias_gelu, {}}},
      {"com.microsoft::FastGelu", {import_fast_gelu, {}}},
      {"com.microsoft::GemmFastGelu", {import_gemm_fast_gelu, {}}},
      {"com.microsoft::QuickGelu", {import_quick_gelu, {"alpha"}}},
      {"com.microsoft::SkipLayerNormalization", {import_skip_layer_norm, {"epsilon"}}},
      {"com.microsoft::SkipSimplifiedLayerNormalization", {import_skip_rms_norm, {"epsilon"}}},
      {"com.microsoft::EmbedLayerNormalization",
       {import_embed_layer_norm, {"epsilon", "mask_index_type"}}},
      {"com.microsoft::QEmbedLayerNormalization", {import_quantized_embed_layer_norm, {"epsilon"}}},
  };
}

}  // namespace bertcl::onnx_io
