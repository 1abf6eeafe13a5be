// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of com.microsoft, as decoders have it, of texts without earlier tokens.
#include "onnx/attention.hpp"

namespace bertcl::onnx_io {
namespace {

/// y where x is y - 1, through casts and reshapes; else null.
ir::Value* minuend_less_one(ir::Value* x) {
  while (x->producer && (x->producer->op == "Cast" || x->producer->op == "Squeeze" ||
                         x->producer->op == "Reshape" || x->producer->op == "Unsqueeze"))
    x = x->producer->inputs[0];
  if (!x->producer || x->producer->op != "Sub") return nullptr;
  const ir::Value* one = x->producer->inputs[1];
  if (!one->is_constant() || one->constant->size() != 1 || one->constant->to_doubles()[0] != 1)
    return nullptr;
  return x->producer->inputs[0];
}

/// Tokens of each sequence, i32 [batch]: seqlens_k, which is their number less one, plus one.
ir::Value* lengths(NodeImport& node, const ir::Dim& batch) {
  ir::Value* x = node.input(5);
  ir::Value* sum = minuend_less_one(x);
  if (!sum) sum = node.add(x, node.scalar(1, x->type.dtype));
  return node.reshape(node.cast(sum, ir::DType::i32), {batch});
}

/// GroupQueryAttention(query, key, value, past_key, past_value, seqlens_k, total_sequence_length,
/// cos_cache, sin_cache, position_ids): queries, keys and values may come as one.
void import_group_query_attention(NodeImport& node) {
  for (const std::size_t i : {3, 4})
    if (has_past(node, i))
      node.fail("past keys and values must be empty, got '{}' {}", node.optional_input(i)->name,
                ir::str(node.optional_input(i)->type));
  refuse_operands(node, 10, 10, "attention_bias");
  refuse_operands(node, 11, 11, "head_sink");
  refuse_operands(node, 12, 13, "a scale of quantized keys or values");
  if (node.int_attribute("local_window_size", -1) > 0)
    node.fail("a local_window_size is not supported");
  if (node.int_attribute("smooth_softmax", 0) > 0) node.fail("smooth_softmax is not supported");
  const std::int64_t heads = node.int_attribute("num_heads", 0);
  const std::int64_t kv_heads = node.int_attribute("kv_num_heads", 0);
  if (heads <= 0 || kv_heads <= 0)
    node.fail("attributes 'num_heads' and 'kv_num_heads' are missing");
  std::vector<ir::Value*> parts{node.input(0), node.optional_input(1), node.optional_input(2)};
  if (!parts[1] || !parts[2]) {
    const ir::Shape& s = parts[0]->type.shape;
    const auto size = s.size() == 3 ? ir::Dim::divide(s[2], heads + 2 * kv_heads) : std::nullopt;
    if (!size || !size->is_constant())
      node.fail("cannot split '{}' {} into {} heads", parts[0]->name, ir::str(parts[0]->type),
                heads + 2 * kv_heads);
    const std::int64_t n = size->constant();
    const std::vector<std::int64_t> sizes{heads * n, kv_heads * n, kv_heads * n};
    parts = node.emit_many("Split", {parts[0]}, {{"axis", 2}, {"split", sizes}}, 3);
  }
  AttentionInputs h{split_heads(node, parts[0], heads),    split_heads(node, parts[1], kv_heads),
                    split_heads(node, parts[2], kv_heads), {},
                    node.float_attribute("scale", 0),      node.float_attribute("softcap", 0)};
  const ir::Dim batch = h.query->type.shape[0], rows = h.query->type.shape[2];
  if (node.int_attribute("do_rotary", 0)) {
    const ir::Shape& table = node.shape(7);
    if (table.size() != 2 || !table[1].is_constant())
      node.fail("cos_cache '{}' is {}, expected a matrix", node.input(7)->name, ir::str(table));
    ir::Value* positions = node.optional_input(9);
    if (!positions) positions = node.reshape(node.range(rows), {1, rows});
    const RotaryTables tables{7, 8, positions, 2 * table[1].constant(),
                              node.int_attribute("rotary_interleaved", 0) != 0};
    h.query = emit_rotary(node, h.query, tables, false);
    h.key = emit_rotary(node, h.key, tables, false);
  }
  node.set_output(1, h.key);
  node.set_output(2, h.value);
  h.key = repeat_heads(node, h.key, heads);
  h.value = repeat_heads(node, h.value, heads);
  ir::Value* kept = padding_mask(node, lengths(node, batch), batch, rows, rows, kMaskedScore);
  h.score_terms.push_back(emit_causal_mask(node, rows, rows, kept));
  node.set_output(0, emit_attention(node, h));
}

}  // namespace

Rules group_query_rules() {
  return {{"com.microsoft::GroupQueryAttention",
           {import_group_query_attention,
            {"num_heads", "kv_num_heads", "scale", "softcap", "do_rotary", "rotary_interleaved",
             "local_window_size", "smooth_softmax", "k_quant_type", "v_quant_type",
             "kv_cache_bit_width", "qk_output"}}}};
}

}  // namespace bertcl::onnx_io
