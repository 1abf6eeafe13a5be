// SPDX-License-Identifier: Apache-2.0
// Whole attention operators, decomposed into the MatMuls that exporters write: Attention and
// MultiHeadAttention of com.microsoft, Attention of opset 23.
#include "onnx/attention.hpp"

#include <cmath>

namespace bertcl::onnx_io {
namespace {

constexpr double kNoScale = 0;

/// The stages of the scores [batch, heads, rows, keys], as qk_matmul_output_mode counts them.
enum Stage : std::size_t { raw, capped, masked, weights, stages };

struct Attended {
  ir::Value* result;          // [batch, rows, heads * value size]
  ir::Value* scores[stages];  // at each stage
};

/// softmax(softcap(scale * Q K') + terms) V. The cap comes before the mask, so that it does not let
/// masked keys in again.
Attended attend_in_stages(NodeImport& node, const AttentionInputs& h) {
  const ir::Shape& q = h.query->type.shape;
  double scale = h.scale;
  if (scale == kNoScale) {
    if (!q.back().is_constant()) node.fail("the head size is not constant");
    scale = 1.0 / std::sqrt(static_cast<double>(q.back().constant()));
  }
  Attended a{};
  ir::Value* scores = node.emit("MatMul", {h.query, node.transpose_last_two(h.key)});
  const ir::Shape shape = scores->type.shape;
  const ir::DType dtype = scores->type.dtype;
  scores = a.scores[raw] = node.mul(scores, node.scalar(scale, dtype));
  if (h.softcap != 0) {
    ir::Value* cap = node.scalar(h.softcap, dtype);
    scores = node.mul(node.emit("Tanh", {node.emit("Div", {scores, cap})}), cap);
  }
  a.scores[capped] = scores;
  for (ir::Value* term : h.score_terms) scores = node.add(scores, node.cast(term, dtype));
  a.scores[masked] = scores;
  if (scores->type.shape != shape)
    node.fail("a mask or bias cannot be broadcast to the scores {}", ir::str(shape));
  ir::Value* p = node.emit("Softmax", {scores}, {{"axis", -1}});
  if (h.zero_empty_rows)  // as torch writes it
    p = node.emit("Where", {node.emit("IsNaN", {p}), node.scalar(0, dtype), p});
  a.scores[weights] = p;
  ir::Value* mixed =
      node.transpose(node.emit("MatMul", {a.scores[weights], h.value}), {0, 2, 1, 3});
  const ir::Shape& m = mixed->type.shape;
  a.result = node.reshape(mixed, {m[0], m[1], m[2] * m[3]});
  return a;
}

/// Keys or values of earlier tokens [batch, heads, past, size] in front of those of this run.
ir::Value* with_past(NodeImport& node, ir::Value* past, ir::Value* now) {
  if (!past) return now;
  const ir::Shape &p = past->type.shape, &n = now->type.shape;
  if (p.size() == 4 && p[2] == ir::Dim(0)) return now;
  if (p.size() != 4 || n.size() != 4 || p[0] != n[0] || p[1] != n[1] || p[3] != n[3])
    node.fail("past keys or values {} do not match those of this run {}", ir::str(past->type),
              ir::str(now->type));
  return node.emit("Concat", {past, now}, {{"axis", 2}});
}

/// 0 where `keep` is true, `filter` where it is false.
ir::Value* filtered(NodeImport& node, ir::Value* keep, double filter) {
  return node.emit("Where",
                   {keep, node.scalar(0, ir::DType::f32), node.scalar(filter, ir::DType::f32)});
}
}  // namespace

ir::Value* emit_attention(NodeImport& node, const AttentionInputs& h) {
  return attend_in_stages(node, h).result;
}

ir::Value* emit_causal_mask(NodeImport& node, const ir::Dim& rows, const ir::Dim& keys,
                            ir::Value* term, double filter) {
  ir::Value* row = node.reshape(node.range(rows), {rows, 1});
  ir::Value* seen = node.emit("LessOrEqual", {node.range(keys), row});
  if (!term) return filtered(node, seen, filter);
  return node.emit("Where", {seen, term, node.scalar(filter, ir::DType::f32)});
}

bool has_past(NodeImport& node, std::size_t i) {
  const ir::Value* past = node.optional_input(i);
  return past && (past->type.shape.size() != 4 || past->type.shape[2] != ir::Dim(0));
}

ir::Value* repeat_heads(NodeImport& node, ir::Value* x, const ir::Dim& heads) {
  const ir::Shape s = x->type.shape;
  if (s.size() != 4) node.fail("'{}' is {}, expected rank 4", x->name, ir::str(x->type));
  if (s[1] == heads) return x;
  const auto times = ir::Dim::divide(heads, s[1]);
  if (!times) node.fail("{} query heads cannot share {} key heads", heads.str(), s[1].str());
  x = node.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  x = node.emit_typed("Expand", {x}, {x->type.dtype, {s[0], s[1], *times, s[2], s[3]}});
  return node.reshape(x, {s[0], heads, s[2], s[3]});
}

void refuse_operands(NodeImport& node, std::size_t from, std::size_t to, const char* what) {
  for (std::size_t i = from; i <= to; ++i)
    if (node.optional_input(i)) node.fail("operand {} ({}) is not supported", i, what);
}

ir::Value* split_heads(NodeImport& node, ir::Value* x, std::int64_t heads) {
  const ir::Shape& s = x->type.shape;
  const auto size = heads > 0 && s.size() == 3 ? ir::Dim::divide(s.back(), heads) : std::nullopt;
  if (!size) node.fail("cannot split '{}' {} into {} heads", x->name, ir::str(x->type), heads);
  return node.transpose(node.reshape(x, {s[0], s[1], heads, *size}), {0, 2, 1, 3});
}

std::optional<MaskForm> mask_form(const ir::Shape& mask, const ir::Dim& batch, const ir::Dim& rows,
                                  const ir::Dim& keys) {
  if (mask == ir::Shape{batch * ir::Dim(2)}) return MaskForm::ends_and_starts;
  if (mask == ir::Shape{batch}) return MaskForm::ends;
  if (mask == ir::Shape{batch, keys}) return MaskForm::keys;
  if (mask == ir::Shape{batch, rows, keys}) return MaskForm::rows_and_keys;
  return std::nullopt;
}

ir::Value* padding_mask(NodeImport& node, ir::Value* mask, const ir::Dim& batch,
                        const ir::Dim& rows, const ir::Dim& keys, double filter) {
  if (ir::is_float(mask->type.dtype))
    node.fail("mask '{}' is {}, expected integers", mask->name, ir::str(mask->type));
  const auto form = mask_form(mask->type.shape, batch, rows, keys);
  if (!form)
    node.fail(
        "mask '{}' {} is not supported (supported: [{}], [{}, {}] and [{}, {}, {}], "
        "and [{}] of end and start positions)",
        mask->name, ir::str(mask->type), batch.str(), batch.str(), keys.str(), batch.str(),
        rows.str(), keys.str(), (batch * ir::Dim(2)).str());
  const bool has_starts = form == MaskForm::ends_and_starts;
  if (has_starts || form == MaskForm::ends) {
    ir::Value* places = node.range(keys, mask->type.dtype);
    const auto row = [&](std::int64_t i) {
      ir::Value* all = node.reshape(mask, {has_starts ? 2 : 1, batch});
      ir::Value* at = node.constant(ir::Tensor::scalar(i), "row");
      return node.reshape(node.emit("Gather", {all, at}, {{"axis", 0}}), {batch, 1, 1, 1});
    };
    ir::Value* keep = node.emit("Less", {places, row(0)});
    if (has_starts) keep = node.emit("And", {keep, node.emit("LessOrEqual", {row(1), places})});
    return filtered(node, keep, filter);
  }
  const ir::Shape wide{batch, 1, form == MaskForm::keys ? ir::Dim(1) : rows, keys};
  ir::Value* keep = node.emit("Cast", {node.reshape(mask, wide)}, {{"to", "bool"}});
  return filtered(node, keep, filter);
}

namespace {

/// Operand i, which is added to scores [batch, heads, rows, keys]; null where it is absent.
ir::Value* attention_bias_of(NodeImport& node, std::size_t i) {
  ir::Value* bias = node.optional_input(i);
  if (bias && (bias->type.shape.size() != 4 || !ir::is_float(bias->type.dtype)))
    node.fail("the attention bias '{}' is {}, expected floats of rank 4", bias->name,
              ir::str(bias->type));
  return bias;
}

/// What the packed forms of com.microsoft have in common after their MatMul: `packed` is
/// [batch, rows, queries | keys | values], the mask and the bias of the scores may be null.
void finish_packed_attention(NodeImport& node, ir::Value* packed, ir::Value* mask,
                             ir::Value* attention_bias) {
  if (node.output_count() > 1) node.fail("output 'present' is not supported");
  const std::int64_t heads = node.int_attribute("num_heads", 0);
  if (heads <= 0) node.fail("attribute 'num_heads' is missing");
  const ir::Shape input = node.shape(0);
  if (input.size() != 3) node.fail("the input has shape {}, expected rank 3", ir::str(input));
  if (packed->type.shape.size() != 3 || !packed->type.shape[2].is_constant())
    node.fail("weights or bias do not match the input");
  const std::int64_t width = packed->type.shape[2].constant();
  auto sizes = node.ints_attribute("qkv_hidden_sizes");
  if (!sizes) sizes = std::vector<std::int64_t>(3, width / 3);
  if (sizes->size() != 3 || (*sizes)[0] != (*sizes)[1])
    node.fail("qkv_hidden_sizes must hold three sizes, equal for queries and keys");
  const auto parts = node.emit_many("Split", {packed}, {{"axis", 2}, {"split", *sizes}}, 3);
  AttentionInputs h{split_heads(node, parts[0], heads),
                    split_heads(node, parts[1], heads),
                    split_heads(node, parts[2], heads),
                    {},
                    node.float_attribute("scale", 0)};
  const double filter = node.float_attribute("mask_filter_value", -10000);
  const ir::Dim batch = input[0], rows = input[1];
  ir::Value* term = mask ? padding_mask(node, mask, batch, rows, rows, filter) : nullptr;
  if (node.int_attribute("unidirectional", 0)) term = emit_causal_mask(node, rows, rows, term);
  if (term) h.score_terms.push_back(term);
  if (attention_bias) h.score_terms.push_back(attention_bias);
  node.set_output(0, emit_attention(node, h));
}

/// com.microsoft::Attention(input, weights, bias, mask_index, past, attention_bias)
void import_packed_attention(NodeImport& node) {
  refuse_operands(node, 4, 4, "past");
  refuse_operands(node, 6, 6, "past_sequence_length");
  ir::Value* packed = node.emit("MatMul", {node.input(0), node.input(1)});
  if (node.optional_input(2)) packed = node.add(packed, node.optional_input(2));
  finish_packed_attention(node, packed, node.optional_input(3), attention_bias_of(node, 5));
}

/// com.microsoft::QAttention(input, weight, bias, input_scale, weight_scale, mask_index,
/// input_zero_point, weight_zero_point, past): the MatMul is of integers, all else is float.
void import_quantized_attention(NodeImport& node) {
  refuse_operands(node, 8, 8, "past");
  ir::Value* sums = node.emit("MatMulInteger", {node.input(0), node.input(1),
                                                node.optional_input(6), node.optional_input(7)});
  ir::Value* scale = node.mul(node.input(3), node.input(4));
  ir::Value* packed = node.mul(node.cast(sums, scale->type.dtype), scale);
  finish_packed_attention(node, node.add(packed, node.input(2)), node.optional_input(5), nullptr);
}

/// Past keys or values in a buffer [batch, heads, longest, size] of which `length` rows are filled,
/// with those of this run, one row, after them.
ir::Value* in_buffer(NodeImport& node, ir::Value* buffer, ir::Value* length, ir::Value* now) {
  const ir::Shape &b = buffer->type.shape, &n = now->type.shape;
  if (b.size() != 4 || b[0] != n[0] || b[1] != n[1] || b[3] != n[3] || n[2] != ir::Dim(1))
    node.fail(
        "past_sequence_length requires new keys and values of length 1 and a matching past buffer; "
        "found {} and {}",
        ir::str(now->type), ir::str(buffer->type));
  ir::Value* places = node.reshape(node.range(b[2], length->type.dtype), {b[2], 1});
  return node.emit("Where", {node.emit("Equal", {places, length}), now, buffer});
}

/// com.microsoft::MultiHeadAttention(query, key, value, bias, key_padding_mask, attention_bias)
void import_multi_head_attention(NodeImport& node) {
  if (node.optional_input(6)) refuse_operands(node, 9, 9, "cache_indirection of past keys");
  const std::int64_t heads = node.int_attribute("num_heads", 0);
  if (heads <= 0) node.fail("attribute 'num_heads' is missing");
  ir::Value* operands[3] = {node.input(0), node.optional_input(1), node.optional_input(2)};
  if (!operands[1] || !operands[2]) node.fail("packed queries, keys and values are not supported");
  for (const ir::Value* x : operands)
    if (x->type.shape.size() != 3 && x->type.shape.size() != 4)
      node.fail("'{}' is {}, expected rank 3 or 4", x->name, ir::str(x->type));
  if (ir::Value* bias = node.optional_input(3)) {
    // Keys and values that come divided into heads have their bias already.
    const bool divided = operands[1]->type.shape.size() == 4;
    if (bias->type.shape.empty()) node.fail("the bias is a scalar, expected a vector");
    const ir::Dim query = operands[0]->type.shape.back(), all = bias->type.shape.back();
    const ir::Dim key = divided ? ir::Dim(0) : operands[1]->type.shape.back();
    if (!query.is_constant() || !key.is_constant() || !all.is_constant())
      node.fail("a bias needs operands of known hidden size");
    const std::int64_t rest = all.constant() - query.constant() - key.constant();
    const auto parts = node.emit_many(
        "Split", {bias},
        {{"axis", 0}, {"split", std::vector<std::int64_t>{query.constant(), key.constant(), rest}}},
        3);
    for (int i = 0; i < (divided ? 1 : 3); ++i) operands[i] = node.add(operands[i], parts[i]);
  }
  const auto as_heads = [&](ir::Value* x) {  // keys and values may come divided into heads
    return x->type.shape.size() == 4 ? x : split_heads(node, x, heads);
  };
  ir::Value* filled = node.optional_input(8);
  const auto with_past_or_buffer = [&](std::size_t past, ir::Value* now) {
    return filled && node.optional_input(past)
               ? in_buffer(node, node.optional_input(past), filled, now)
               : with_past(node, node.optional_input(past), now);
  };
  AttentionInputs h{split_heads(node, operands[0], heads),
                    with_past_or_buffer(6, as_heads(operands[1])),
                    with_past_or_buffer(7, as_heads(operands[2])),
                    {},
                    node.float_attribute("scale", 0)};
  const ir::Shape q = h.query->type.shape, k = h.key->type.shape, v = h.value->type.shape;
  if (k[0] != q[0] || k[1] != q[1] || k[3] != q[3] || v[0] != q[0] || v[1] != q[1] || v[2] != k[2])
    node.fail("query {}, key {} and value {} do not match", ir::str(node.shape(0)),
              ir::str(node.shape(1)), ir::str(node.shape(2)));
  node.set_output(1, h.key);
  node.set_output(2, h.value);
  if (filled && node.optional_input(6))
    h.score_terms.push_back(filtered(
        node,
        node.emit("LessOrEqual", {node.range(k[2], filled->type.dtype), node.reshape(filled, {1})}),
        kMaskedScore));
  if (has_past(node, 6) && node.int_attribute("unidirectional", 0))
    node.fail("unidirectional attention with past keys is not supported");
  const double filter = node.float_attribute("mask_filter_value", -10000);
  ir::Value* term = node.optional_input(4)
                        ? padding_mask(node, node.optional_input(4), q[0], q[2], k[2], filter)
                        : nullptr;
  if (node.int_attribute("unidirectional", 0)) term = emit_causal_mask(node, q[2], k[2], term);
  if (term) h.score_terms.push_back(term);
  if (node.optional_input(5)) h.score_terms.push_back(attention_bias_of(node, 5));
  const Attended attended = attend_in_stages(node, h);
  node.set_output(0, attended.result);
  node.set_output(3, attended.scores[masked]);
}

/// Attention of opset 23 (Q, K, V, attn_mask, past_key, past_value), heads apart [batch, heads,
/// rows, size] or together [batch, rows, hidden].
void import_attention(NodeImport& node) {
  refuse_operands(node, 6, 6, "nonpad_kv_seqlen");
  const bool together = node.shape(0).size() == 3;
  const auto as_heads = [&](std::size_t i) {
    const char* heads = i == 0 ? "q_num_heads" : "kv_num_heads";
    return together ? split_heads(node, node.input(i), node.int_attribute(heads, 0))
                    : node.input(i);
  };
  AttentionInputs h{as_heads(0),
                    with_past(node, node.optional_input(4), as_heads(1)),
                    with_past(node, node.optional_input(5), as_heads(2)),
                    {},
                    node.float_attribute("scale", 0),
                    node.float_attribute("softcap", 0)};
  const ir::Shape q = h.query->type.shape;
  if (q.size() != 4) node.fail("the queries are {}, expected rank 3 or 4", ir::str(h.query->type));
  node.set_output(1, h.key);
  node.set_output(2, h.value);
  h.key = repeat_heads(node, h.key, q[1]);
  h.value = repeat_heads(node, h.value, q[1]);
  const ir::Shape k = h.key->type.shape;
  ir::Value* mask = node.optional_input(3);
  h.zero_empty_rows = mask;
  const double filter = mask ? -std::numeric_limits<double>::infinity() : kMaskedScore;
  if (mask)
    h.score_terms.push_back(mask->type.dtype == ir::DType::boolean ? filtered(node, mask, filter)
                                                                   : mask);
  if (has_past(node, 4) && node.int_attribute("is_causal", 0))
    node.fail("causal attention with past keys is not supported");
  if (node.int_attribute("is_causal", 0))
    h.score_terms.push_back(emit_causal_mask(node, q[2], k[2], nullptr, filter));
  const Attended attended = attend_in_stages(node, h);
  const std::int64_t mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (mode < 0 || mode >= std::int64_t{stages})
    node.fail("qk_matmul_output_mode {} is outside 0 to 3", mode);
  ir::Value* scores = attended.scores[mode];
  if (mode == masked && mask &&
      mask->type.dtype == ir::DType::boolean)  // as ONNX Runtime gives them
    scores = node.emit("Max", {scores, node.scalar(kMaskedScore, scores->type.dtype)});
  node.set_output(3, scores);
  ir::Value* y = attended.result;
  if (!together) {
    const ir::Shape v = h.value->type.shape;
    y = node.transpose(node.reshape(y, {q[0], q[2], q[1], v[3]}), {0, 2, 1, 3});
  }
  node.set_output(0, y);
}

}  // namespace

Rules attention_rules() {
  return {
      {"com.microsoft::Attention",
       {import_packed_attention,
        {"num_heads", "unidirectional", "qkv_hidden_sizes", "scale", "mask_filter_value"}}},
      {"com.microsoft::QAttention",
       {import_quantized_attention, {"num_heads", "unidirectional", "scale", "mask_filter_value"}}},
      {"com.microsoft::MultiHeadAttention",
       {import_multi_head_attention,
        {"num_heads", "unidirectional", "scale", "mask_filter_value"}}},
      {"Attention",
       {import_attention,
        {"scale", "is_causal", "q_num_heads", "kv_num_heads", "softcap", "qk_matmul_output_mode",
         "softmax_precision"}}},
  };
}

}  // namespace bertcl::onnx_io
