// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al., 2017) becomes one op, whatever its spelling.
//
//   q -> Reshape -> Transpose(0,2,1,3) -> qh
//   k -> Reshape -> Transpose(0,2,3,1) -> kh
//   v -> Reshape -> Transpose(0,2,1,3) -> vh
//   MatMul(qh, kh) -> * scale -> + mask -> Softmax -> [Q -> DQ] -> p
//   MatMul(p, vh) -> Transpose(0,2,1,3) -> Reshape -> y
//   becomes
//   attention(q, k, v, attention_mask, p_scale, p_zero_point) {heads, scale} -> y
//
// or, where the softmax is unnormalized, so that quantization sees exponentials whose largest is 1,
//
//   scores -> s;  s -> ReduceMax -> m;  s - m -> Exp -> [Q -> DQ] -> p
//   MatMul(p, vh) / ReduceSum(p)
//   becomes
//   the same, with {unnormalized = 1} if p is quantized
//
// Where(IsNaN(p), 0, p) may stand after Softmax or Exp, and after Exp the sum may be Max(sum, c),
// with c too small for other rows than those without keys.
//
// The scores may be quantized between the MatMul and the factor or mask after it (attributes
// score_scale, score_lowest, score_factor), and so may the context, P x V: that Q -> DQ moves
// after y.
//
// Rotary positions on q and k, before the Transpose or after it, become an op each, on rows instead
// of heads:
//
//   heads * cos + Concat(-heads[half:], heads[:half]) * sin
//   becomes
//   rotary(q, cos, sin) {heads}
//
// by a table for all sequences or one of each; and before it, or without it, a norm of each head:
//
//   q -> Reshape -> RMSNormalization -> Transpose(0,2,1,3)
//   becomes
//   q -> Reshape -> RMSNormalization -> Reshape
//
// What is added to the scores and depends on sizes alone, as relative positions do, becomes the
// operand `bias`, and so does a causal mask, or the causal part of one: Where(key <= row, 0,
// -FLT_MAX). With a mask of padding, rows before its first key have no keys; they are treated as
// padding. A mask that also hides keys far from the row gives the attribute {window}. What relative
// positions add by queries and keys becomes ops of its own, whose sum is that operand
// (attention_positions.hpp). A mask that hides the rows of padding, too, is taken for one of keys
// alone: what the file computes in these rows is lost, {masks_rows = 1}. Where the results for
// padding are kept, or an operator mixes them with others without the mask, attention under such a
// mask stays as it is. So does attention in a window whose rows of padding are mixed with others:
// rows farther than the window from the last token have no keys, and get 0 where files give a mean.
// So does causal attention where nothing but the mask says what is padding: the rows of such a file
// are not known to be tokens.
//
// Heads of k and v that are repeated for several heads of q each (Reshape, Expand, Reshape) are
// read where they are: {key_heads}.
//
// q, k, v, y are [batch, seq, hidden]. The scale may stand on q, on k or on the scores. The mask
// may be added or selected by Where; how it is made does not matter: it is recognized by what it
// does (ops/recognize_by_value.hpp). ONNX Runtime's optimizer replaces a mask by the number of its
// ones, and as many first keys count: {mask_is_length = 1}. Tokens are packed for one mask, so
// attention under another one than the first (or under none) stays as it is, and so does attention
// over other rows. So does attention under a mask whose queries are not known to be the tokens of
// its keys, as cross attention (same_tokens.hpp).
#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "ir/input_role.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/padding_readers.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/recognize/attention_heads.hpp"
#include "passes/recognize/attention_parts.hpp"
#include "passes/recognize/same_tokens.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

struct Found {
  HeadsOperand q, k, v;
  double scale = 1.0;
  ScoreTerms terms;
  ir::Node* quantize = nullptr;
  ir::Node* quantize_scores = nullptr;
  double score_factor = 1.0;  // after them
  ir::Node* quantize_context = nullptr;
  ir::Node* last = nullptr;   // of the spelling
  bool unnormalized = false;  // divided by the sum of p after the MatMul
  std::vector<ir::Node*> nodes;
};

/// True for a reduction `op` of [batch, heads, seq, keys] over the keys, which keeps the axis.
bool reduces_keys(const ir::Node& n, std::string_view op) {
  return n.op == op && reduces_last_axis(n);
}

/// The masked scores under Softmax, or under Exp(s - max(s)); null if `node` is neither.
ir::Value* scores_under(ir::Node& node, Found& found) {
  if (node.output()->type.shape.size() != 4) return nullptr;
  found.nodes.push_back(&node);
  if (node.op == "Softmax")
    return ops::is_last_axis(node, -1, node.output()->type.shape) ? node.inputs[0] : nullptr;
  ir::Node* sub = node.op == "Exp" ? node.inputs[0]->producer : nullptr;
  if (!sub || sub->op != "Sub") return nullptr;
  ir::Node* max = sub->inputs[1]->producer;
  if (!max || !reduces_keys(*max, "ReduceMax") || max->inputs[0] != sub->inputs[0]) return nullptr;
  found.nodes.insert(found.nodes.end(), {sub, max});
  found.unnormalized = true;
  return sub->inputs[0];
}

bool match_scores(const ir::Graph& g, ir::Node& softmax, Found& found) {
  ir::Value* scores = scores_under(softmax, found);
  if (!scores) return false;
  scores = strip_terms(g, scores, found.terms, found.nodes);
  while (scores && scores->producer && scores->producer->op != "MatMul") {
    ir::Node* n = scores->producer;
    if (const auto factor = scaled(*n)) {
      found.scale *= factor->factor;
      scores = factor->x;
    } else if (ir::Node* q = pair_of(n); q && !found.quantize_scores) {
      found.quantize_scores = q;
      found.score_factor = std::exchange(found.scale, 1.0);
      found.nodes.push_back(q);
      scores = q->inputs[0];
    } else {
      return false;
    }
    found.nodes.push_back(n);
  }
  if (!scores || !scores->producer) return false;
  found.nodes.push_back(scores->producer);
  return match_split_heads(scores->producer->inputs[0], {0, 2, 1, 3}, found.q, found.nodes) &&
         match_split_heads(scores->producer->inputs[1], {0, 2, 3, 1}, found.k, found.nodes);
}

/// True for Max(sum, c) that changes no sum of p but 0: the least is one step, and 1 in float.
bool keeps_positive_sums(const ir::Node& max, const ir::Value* sum, const Found& found) {
  if (max.inputs.size() != 2) return false;
  const auto least = scalar_value(max.inputs[max.inputs[0] == sum ? 1 : 0]);
  const auto step = found.quantize ? scalar_value(found.quantize->inputs[1]) : 1.0;
  return least && step && *least > 0.0 && *least <= *step;
}

/// Takes the MatMul of `p` and v, and where the normalization is unnormalized its division by the
/// sum of p. Returns the context [batch, heads, seq, size], null if the readers of p are others.
ir::Value* match_context(const ir::Graph& g, ir::Value* p, Found& found) {
  ir::Node* matmul = only_user(g, p);
  ir::Value* sum = nullptr;
  if (found.unnormalized) {
    if (p->users.size() != 2 || g.is_output(p)) return nullptr;
    const std::size_t i = reduces_keys(*p->users[0], "ReduceSum") ? 0 : 1;
    if (!reduces_keys(*p->users[i], "ReduceSum")) return nullptr;
    sum = p->users[i]->output();
    matmul = p->users[1 - i];
  }
  if (!matmul || matmul->op != "MatMul" || matmul->inputs[0] != p) return nullptr;
  found.nodes.push_back(matmul);
  if (!match_split_heads(matmul->inputs[1], {0, 2, 1, 3}, found.v, found.nodes)) return nullptr;
  if (!sum) return matmul->output();
  found.nodes.push_back(sum->producer);
  if (ir::Node* max = only_user(g, sum); max && max->op == "Max") {
    if (!keeps_positive_sums(*max, sum, found)) return nullptr;
    found.nodes.push_back(max);
    sum = max->output();
  }
  ir::Node* quotient = only_user(g, matmul->output());
  if (!quotient || quotient->op != "Div" || quotient->inputs[1] != sum) return nullptr;
  found.nodes.push_back(quotient);
  return quotient->output();
}

/// Follows the probabilities down to the merged heads; returns the last node of the spelling.
ir::Node* match_context(const ir::Graph& g, ir::Node& softmax, Found& found) {
  ir::Value* p = softmax.output();
  // The kernels give 0 for rows without any key.
  if (ir::Node* where = without_nan(p)) {
    found.nodes.insert(found.nodes.end(), {where->inputs[0]->producer, where});
    p = where->output();
  }
  ir::Node* user = only_user(g, p);
  if (user && user->op == "QuantizeLinear" && is_per_tensor(*user) &&
      ir::is_int8(user->output()->type.dtype)) {
    ir::Node* dq = only_user(g, user->output());
    if (!dq || dq->op != "DequantizeLinear" || !same_parameters(*user, *dq)) return nullptr;
    found.quantize = user;
    found.nodes.insert(found.nodes.end(), {user, dq});
    p = dq->output();
  }
  const ir::Value* context = match_context(g, p, found);
  if (!context) return nullptr;
  if (ir::Node* q = only_user(g, context); q && q->op == "QuantizeLinear")
    if (ir::Node* dq = only_user(g, q->output()); pair_of(dq) == q) {
      found.quantize_context = q;
      found.nodes.insert(found.nodes.end(), {q, dq});
      context = dq->output();
    }
  ir::Node* transpose = only_user(g, context);
  if (!transpose || transpose->op != "Transpose" ||
      transpose->ints_attribute("perm") != Permutation{0, 2, 1, 3})
    return nullptr;
  ir::Node* reshape = only_user(g, transpose->output());
  if (!reshape || reshape->op != "Reshape" ||
      reshape->output()->type.shape != found.q.hidden->type.shape)
    return nullptr;
  found.nodes.insert(found.nodes.end(), {transpose, reshape});
  return reshape;
}

/// i8 with zero point -128 is u8 with zero point 0 less 128: the MatMul with v is the same.
bool is_shifted_u8(const ir::Node& quantize) {
  return quantize.output()->type.dtype == ir::DType::i8 && zero_point_of(quantize.input(2)) == -128;
}

/// One kernel is all integer or all float: if the probabilities are quantized, so are q, k and v.
/// If they are not, attention is in float, and whichever of q, k and v are quantized are
/// dequantized before it.
bool is_one_kernel(const Found& f) {
  if (!f.quantize) return !f.quantize_scores && !f.quantize_context;
  for (const HeadsOperand* h : {&f.q, &f.k, &f.v})
    if (h->has_steps() ? !h->quantize : !per_tensor_dequantized(h->hidden)) return false;
  // Kernels take exponentials relative to the largest sum of integers.
  if (f.scale * f.q.scale * f.k.scale < 0 || f.score_factor < 0) return false;
  if (!has_inverse(*f.quantize->inputs[1])) return false;
  // The largest exponential, 1, must be at least one step: the sum of p is a divisor.
  if (f.unnormalized && !(*scalar_value(f.quantize->inputs[1]) <= 1)) return false;
  return zero_point_of(f.quantize->input(2)) == 0 || is_shifted_u8(*f.quantize);
}

/// Q -> DQ with the parameters of `q` for the result of `attention`, which is taken for `last`
/// then.
void quantize_result(ir::Graph& g, ir::Node& attention, const ir::Node& q, ir::Node* last) {
  std::vector<ir::Value*> operands = q.inputs;
  const ir::Type type = attention.output()->type;
  operands[0] = attention.output();
  operands[0] = g.add("QuantizeLinear", operands, {}, {q.output()->type.dtype, type.shape}, last);
  ir::Value* dequantized = g.add("DequantizeLinear", operands, {}, type, last);
  operands[0]->producer->sources = dequantized->producer->sources = q.sources;
  g.replace_uses(last->output(), dequantized);
}

/// The op works on packed tokens: the mask or some other input [batch, seq] must tell how many
/// sequences of which length there are, or where the model takes no tokens, as of images, the sizes
/// of its inputs.
bool tells_sequences(const ir::Graph& g, const Found& f) {
  const ir::Shape& rows = f.q.hidden->type.shape;
  if (f.terms.mask) return has_rows(rows, f.terms.mask->input->type.shape);
  if (!takes_tokens(g)) return !ir::unknown_symbol(std::span(rows).first(2), g.input_symbols());
  return std::ranges::any_of(g.inputs(), [&](const ir::Value* in) {
    return has_rows(rows, in->type.shape) && !ir::is_float(in->type.dtype);
  });
}

/// True if `node` makes probabilities out of the scores of attention.
bool match_attention(const ir::Graph& g, ir::Node& node, Found& f) {
  if (node.op != "Softmax" && node.op != "Exp") return false;
  if (!match_scores(g, node, f)) return false;
  // Rows before the first key that the mask keeps have none: files differ in what they give there.
  if (f.terms.span.causal && f.terms.mask) f.terms.mask->masks_rows = true;
  f.last = match_context(g, node, f);
  if (!f.last || f.v.scale != 1.0 || f.v.has_steps()) return false;
  const ir::Shape& rows = f.q.hidden->type.shape;
  for (const HeadsOperand* h : {&f.k, &f.v}) {
    if (h->count * ir::Dim(f.k.shared) != f.q.count || h->shared != f.k.shared) return false;
    if (h->size != f.q.size || !has_rows(h->hidden->type.shape, {rows[0], rows[1]})) return false;
  }
  if (f.q.shared != 1) return false;
  if (f.q.size.is_constant() && f.q.size.constant() > kMaxHeadSize) return false;  // no kernel
  if ((f.terms.bias || f.terms.span.causal) && !f.terms.positions.empty())
    return false;  // one of both
  if (!is_one_kernel(f) || !tells_sequences(g, f)) return false;
  const auto& mask = f.terms.mask;  // packing drops the queries that are in the place of its zeros
  return !mask || are_of_same_tokens(f.q.hidden, f.k.hidden, mask->input);
}

/// True if an operator may mix what attention under that mask gives for padding with other rows, as
/// attention under another one does. Such a graph might not be packed either.
bool is_padding_read(const ir::Graph& g, const ops::KeyMask& mask) {
  std::set<const ir::Node*> nodes;
  std::set<const ir::Value*> results;
  for (const auto& n : g.nodes()) {
    Found f;
    if (!match_attention(g, *n, f)) continue;
    if (f.terms.mask != mask) return true;
    results.insert(f.last->output());
    nodes.insert(f.nodes.begin(), f.nodes.end());
    for (const PositionTerm& term : f.terms.positions)
      nodes.insert(term.nodes.begin(), term.nodes.end());
  }
  return reader_of_padding(g, mask.input, results, nodes);
}

/// True if an input other than the mask and positions is integers [batch, seq], as ids of tokens
/// are.
bool takes_ids(const ir::Graph& g, const ir::Value* mask) {
  return std::ranges::any_of(g.inputs(), [&](const ir::Value* in) {
    return in != mask && in->type.shape == mask->type.shape && !ir::is_float(in->type.dtype) &&
           ir::role_of_input(in->name) != ir::InputRole::positions;
  });
}

/// What all attention of a graph has in common.
struct Common {
  bool drop_padding = true;
  /// That of the first attention, which may have none.
  std::optional<std::optional<ops::KeyMask>> mask;
  ir::Shape ids;                        // [batch, seq] of the first
  std::optional<bool> padding_is_read;  // empty: not known yet
  ir::Value* causal = nullptr;          // the bias, once it is made
};

bool find_attention_at(ir::Graph& g, ir::Node& node, Common& common) {
  Found f;
  if (!match_attention(g, node, f)) return false;
  ir::Node* last = f.last;
  const auto& key_mask = f.terms.mask;
  const ir::Shape& rows = f.q.hidden->type.shape;
  if (common.mask && (*common.mask != key_mask || !has_rows(rows, common.ids))) return false;
  if (key_mask && f.terms.span.causal && !takes_ids(g, key_mask->input)) return false;
  const bool masks_rows = key_mask && key_mask->masks_rows;
  if (masks_rows && !common.drop_padding) return false;
  if (masks_rows || (key_mask && f.terms.span.window != 0)) {
    if (!common.padding_is_read) common.padding_is_read = is_padding_read(g, *key_mask);
    if (*common.padding_is_read) return false;
  }
  common.mask = key_mask;
  common.ids = {rows[0], rows[1]};
  std::vector<ir::Value*> operands{attention_operand(g, f.q, last), attention_operand(g, f.k, last),
                                   f.v.hidden, key_mask ? key_mask->input : nullptr};
  std::string p_type = "f32";
  if (f.quantize) {
    const bool shifted = is_shifted_u8(*f.quantize);
    p_type = shifted ? "u8" : ir::name_of(f.quantize->output()->type.dtype);
    operands.push_back(f.quantize->inputs[1]);
    operands.push_back(shifted ? nullptr : f.quantize->input(2));
  }
  ir::Attributes attributes{{"heads", f.q.count.constant()},
                            {"p_type", p_type},
                            {"scale", f.scale * f.q.scale * f.k.scale}};
  if (f.k.shared != 1) attributes["key_heads"] = f.k.count.constant();
  if (f.terms.span.window != 0) attributes["window"] = f.terms.span.window;
  if (masks_rows) attributes["masks_rows"] = 1;
  if (ir::Value* bias = add_bias(g, f.terms, rows[1], common.causal, last))
    set_operand(operands, attention::bias, bias);
  if (key_mask && key_mask->mask_is_length) attributes["mask_is_length"] = 1;
  if (f.quantize && f.unnormalized) attributes["unnormalized"] = 1;
  if (f.quantize_scores) {
    const ir::Node& q = *f.quantize_scores;
    const std::int64_t lowest = q.output()->type.dtype == ir::DType::i8 ? -128 : 0;
    attributes["score_scale"] = *scalar_value(q.inputs[1]);
    attributes["score_lowest"] = lowest - zero_point_of(q.input(2));
    attributes["score_factor"] = f.score_factor;
  }
  if (!f.quantize_context) {
    replace(g, last, f.nodes, attention::op, operands, std::move(attributes));
    return true;
  }
  ir::Node* made = g.add_node(attention::op, operands, std::move(attributes),
                              {{last->output()->name, last->output()->type}}, last);
  made->sources = sources_of(f.nodes);
  quantize_result(g, *made, *f.quantize_context, last);
  return true;
}

}  // namespace

Pass find_attention(bool drop_padding) {
  return {"find_attention", [drop_padding](ir::Graph& g) {
            Common common;
            common.drop_padding = drop_padding;
            return rewrite_all(g, [&](ir::Graph& graph, ir::Node& node) {
              return find_attention_at(graph, node, common);
            });
          }};
}

}  // namespace bertcl::passes
