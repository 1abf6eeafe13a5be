// SPDX-License-Identifier: Apache-2.0
// Padding leaves the encoder: [batch, seq, hidden] becomes [tokens, hidden].
//
//   input_ids, token_type_ids, attention_mask -> pack_inputs -> ids[tokens], types[tokens],
//       positions[tokens], seq_offsets[offsets], key_mask[tokens]
//
// Where the model takes no tokens, as of images, every row counts: pack_inputs() {rows}.
//
// Everything between embed_norm and the heads works row by row and does not know of sequences; only
// attention reads seq_offsets (first row of each sequence, batch + 1 entries) and key_mask. Where
// an op of another kind reads a packed value, `unpack` scatters it to [batch, seq, ...] with zero
// rows for padding; where a row-wise region reads an unpacked value, `pack` gathers it. If the mask
// is not ones followed by zeros, the runtime keeps every row: offsets are multiples of seq and
// key_mask does the masking, by the mask or, where attention is {mask_is_length}, by the number of
// its ones (FasterTransformer's effective mode is the model for both). So it does where an unpacked
// value goes into an operator that mixes tokens without a mask, such as a mean over all of them:
// pack_inputs names it in {padding_reader}. What a file computes in rows of padding that its mask
// hides as rows, too ({masks_rows}), is lost; such an operator is an error then.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bertcl/error.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/symbols.hpp"
#include "passes/node_queries.hpp"
#include "passes/padding_readers.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"

namespace bertcl::passes {

using namespace ops::operands;
namespace symbols = ops::symbols;

namespace {

bool is_attention(const ir::Node& n) { return ops::traits(n).is_attention; }

/// Pooling of tokens before they are packed; that of rows [batch, hidden] stays as it is.
bool pools_tokens(const ir::Node& n) {
  return n.op == pool::op && n.inputs[pool::x]->type.shape.size() == 3;
}

/// Values of shape [tokens, ...], in the order in which they became so: nothing may depend on where
/// they lie in memory.
class PackedValues {
 public:
  bool contains(const ir::Value* v) const { return known_.contains(v); }
  void insert(ir::Value* v) {
    if (known_.insert(v).second) order_.push_back(v);
  }
  const std::vector<ir::Value*>& in_order() const { return order_; }

 private:
  std::set<const ir::Value*> known_;
  std::vector<ir::Value*> order_;
};

/// [batch, seq, ...] as [tokens, ...].
ir::Shape rows_of(const ir::Shape& shape) {
  ir::Shape rows{symbols::dim(symbols::tokens)};
  rows.insert(rows.end(), shape.begin() + 2, shape.end());
  return rows;
}

/// True for one scale, or one for each column of [batch, seq, ...]. The operand may have lost an
/// axis already, to which {axis} counts.
bool has_scales_of_columns(const ir::Node& n) {
  const ir::Value* scale = n.inputs[1];
  if (ir::is_scalar(scale)) return true;
  const ir::Shape& shape = n.output()->type.shape;
  return shape.size() > 2 && scale->is_constant() && ops::is_last_axis(n, 1, shape);
}

/// True if each row of the result depends on the same row of the operands only.
bool works_by_row(const ir::Node& n, const PackedValues& packed) {
  // DynamicQuantizeLinear: by the range of all rows, where those of padding no longer count; see
  // docs/architecture.md.
  if (n.op == "DynamicQuantizeLinear") return true;
  if (ops::traits(n).row_wise) return !is_quantization(n) || has_scales_of_columns(n);
  if ((n.op != "Add" && n.op != "Mul") || n.output()->type.shape.size() < 3) return false;
  for (const ir::Value* in : n.inputs) {  // equal shapes, or a constant of the last axis
    if (packed.contains(in) && in->type.shape == rows_of(n.output()->type.shape)) continue;
    if (in->is_constant() && in->type.shape.size() <= 1) continue;
    return false;
  }
  return true;
}

class Packer {
 public:
  explicit Packer(ir::Graph& g) : g_(g) {}

  bool run() {
    ir::Node* embedding = nullptr;
    for (const auto& n : g_.nodes()) {
      if (n->op == pack_inputs::op) return false;
      if (n->op == embed_norm::op) {
        if (embedding) return false;  // two encoders in one file stay padded
        embedding = n.get();
      }
    }
    if (!one_mask()) return false;
    ir::Value* ids = embedding ? embedding->inputs[embed_norm::ids] : any_token_input();
    const ir::Shape rows = ids ? ids->type.shape : rows_of_attention();
    if (rows.size() != 2) return false;
    batch_ = rows[0];
    seq_ = rows[1];
    find_rows_of_tokens();
    add_pack_inputs(ids, embedding);
    for (ir::Node* n : g_.node_list()) visit(*n, embedding);
    unpack_remaining_uses();
    if (!ids) return true;  // nothing is padding
    if (const ir::Node* mixer = unmasked_mixer(rows_hidden())) {
      throw Error(fmt::format(
          "{}: its result depends on padding rows, which the attention mask hides; apply the "
          "mask here, too, or disable the compiler passes find_attention and drop_row_mask",
          mixer->describe()));
    }
    if (const ir::Node* mixer = unmasked_mixer(unpacked_rows())) {
      seq_offsets_->producer->attributes["padding_reader"] = mixer->describe();
    }
    return true;
  }

 private:
  /// Every attention must read the same mask (or none) in the same way, and pooling the same mask;
  /// where attention has none, nothing is padding, and pooling may have any.
  bool one_mask() {
    std::set<std::pair<ir::Value*, bool>> masks;
    for (const auto& n : g_.nodes())
      if (is_attention(*n)) masks.emplace(n->input(attention::mask), n->has("mask_is_length"));
    if (masks.size() > 1) return false;
    if (!masks.empty()) std::tie(mask_, mask_is_length_) = *masks.begin();
    for (const auto& n : g_.nodes()) {
      if (!pools_tokens(*n)) continue;
      if (masks.empty()) mask_ = n->input(pool::mask), masks.emplace(mask_, false);
      if (mask_ && n->input(pool::mask) != mask_) return false;
      pools_.insert(n.get());
    }
    return true;
  }

  /// Without embed_norm (an embedding in another spelling) the encoder is packed all the same, if
  /// it has attention or pooling: the mask, or any input that has its rows, tells the sizes.
  ir::Value* any_token_input() {
    const auto reader = std::find_if(g_.nodes().begin(), g_.nodes().end(), [](const auto& n) {
      return is_attention(*n) || pools_tokens(*n);
    });
    if (reader == g_.nodes().end()) return nullptr;
    if (mask_) return mask_;
    const ir::Shape& rows = (*reader)->inputs[0]->type.shape;
    for (ir::Value* in : g_.inputs())
      if (passes::has_rows(rows, in->type.shape) && !ir::is_float(in->type.dtype)) return in;
    return nullptr;
  }

  /// [batch, seq] where no input tells it.
  ir::Shape rows_of_attention() const {
    if (takes_tokens(g_)) return {};
    for (const auto& n : g_.nodes())
      if (is_attention(*n)) return {n->inputs[0]->type.shape[0], n->inputs[0]->type.shape[1]};
    return {};
  }

  /// Values [batch, seq, ...] on the way to attention or pooling.
  void find_rows_of_tokens() {
    for (auto n = g_.nodes().rbegin(); n != g_.nodes().rend(); ++n) {
      const bool reads = is_attention(**n) || pools_tokens(**n) || makes_rows_of_tokens(**n);
      for (const ir::Value* in : (*n)->inputs)
        if (reads && in && has_rows(in->type.shape)) rows_of_tokens_.insert(in);
    }
  }

  bool makes_rows_of_tokens(const ir::Node& n) const {
    return std::ranges::any_of(n.outputs,
                               [&](const ir::Value* out) { return rows_of_tokens_.contains(out); });
  }

  void add_pack_inputs(ir::Value* ids, ir::Node* embedding) {
    const ir::Dim tokens = symbols::dim(symbols::tokens);
    ir::Value* types = embedding ? embedding->input(embed_norm::types) : nullptr;
    std::vector<ir::Graph::Result> results{
        {"packed_ids", {ir::DType::i32, {tokens}}},
        {"positions", {ir::DType::i32, {tokens}}},
        {"seq_offsets", {ir::DType::i32, {symbols::dim(symbols::offsets)}}},
        {"key_mask", {ir::DType::u8, {tokens}}}};
    if (types) results.push_back({"packed_token_types", {ir::DType::i32, {tokens}}});
    ir::Node* first = g_.nodes().front().get();
    std::vector<ir::Value*> operands;
    if (ids) operands = {ids, types, mask_};
    if (ir::Value* given = embedding ? embedding->input(embed_norm::positions) : nullptr)
      operands.push_back(given);
    ir::Node* node = g_.add_node(pack_inputs::op, operands, {}, results, first);
    if (!ids) node->attributes["rows"] = ir::str(ir::Shape{batch_, seq_});
    if (mask_is_length_) node->attributes["mask_is_length"] = 1;
    seq_offsets_ = node->outputs[2];
    key_mask_ = node->outputs[3];
    if (!embedding) return;
    g_.set_input(embedding, embed_norm::ids, node->outputs[0]);
    if (types) g_.set_input(embedding, embed_norm::types, node->outputs[4]);
    g_.set_input(embedding, embed_norm::positions, node->outputs[1]);
  }

  /// True if each row of tokens is split into heads, or merged again, on the way to attention.
  bool reshapes_rows(const ir::Node& n) const {
    return n.op == "Reshape" && makes_rows_of_tokens(n) &&
           element_count(rows_of(n.output()->type.shape)) == element_count(n.inputs[0]->type.shape);
  }

  bool reads_packed(const ir::Node& n) const {
    for (const ir::Value* in : n.inputs)
      if (in && packed_.contains(in)) return true;
    return false;
  }

  void visit(ir::Node& n, const ir::Node* embedding) {
    if (pools_.contains(&n)) return pack_pooling(n);
    if (n.op == position_scores::op) return pack_position_scores(n);
    const bool attends = is_attention(n), turns = n.op == rotary::op;
    // With fixed sizes, a norm of other values than tokens may have the same shape.
    const bool begins = n.op == add_norm::op && makes_rows_of_tokens(n);
    if (&n != embedding && !attends && !turns && !begins &&
        !(reads_packed(n) && (works_by_row(n, packed_) || reshapes_rows(n))))
      return;
    if (&n != embedding)
      for (std::size_t i = 0; i < (attends || turns ? rows_among(n) : n.inputs.size()); ++i)
        pack_operand(n, i);
    if (turns) g_.set_input(&n, rotary::seq_offsets, seq_offsets_);
    if (attends) {
      const bool integer = n.op == attention_q::op;
      g_.set_input(&n, attention::mask, nullptr);
      g_.set_input(&n, integer ? +attention_q::seq_offsets : +attention::seq_offsets, seq_offsets_);
      g_.set_input(&n, integer ? +attention_q::key_mask : +attention::key_mask, key_mask_);
      n.attributes.erase("mask_is_length");
      n.attributes["masked"] = std::int64_t{mask_ != nullptr};
      if (n.has("masks_rows")) hides_rows_.insert(&n);
      n.attributes.erase("masks_rows");
    }
    if (is_quantization(n) && !is_per_tensor(n)) n.attributes["axis"] = -1;
    for (ir::Value* out : n.outputs) {
      if (out->type.shape.empty()) continue;  // scale and zero point of DynamicQuantizeLinear
      out->type.shape = rows_of(out->type.shape);
      packed_.insert(out);
    }
  }

  /// That many first operands of attention or rotary are rows of tokens; others may look like them.
  static std::size_t rows_among(const ir::Node& n) { return n.op == rotary::op ? 1 : 3; }

  /// Only attention reads its result, where a row is that of a key.
  void pack_position_scores(ir::Node& n) {
    pack_operand(n, position_scores::x);
    g_.set_input(&n, position_scores::seq_offsets, seq_offsets_);
    ir::Shape& shape = n.output()->type.shape;
    shape = {shape[1], symbols::dim(symbols::tokens), symbols::dim(symbols::longest)};
    packed_.insert(n.output());
  }

  /// Its result has no rows of tokens: it stays as it is.
  void pack_pooling(ir::Node& n) {
    pack_operand(n, pool::x);
    if (!packed_.contains(n.inputs[pool::x])) return;
    ir::Value* mask = n.input(pool::mask);
    g_.set_input(&n, pool::mask, nullptr);
    g_.set_input(&n, pool::seq_offsets, seq_offsets_);
    g_.set_input(&n, pool::key_mask, key_mask_);
    if (mask_is_length_ || mask != mask_) {  // no mask of the keys: pooling reads the mask itself
      const ir::Type truth{ir::DType::boolean, mask->type.shape};
      const ir::Attributes to{{"to", std::string(ir::name_of(truth.dtype))}};
      g_.set_input(&n, pool::key_mask, pack(g_.add("Cast", {mask}, to, truth, &n), n));
    }
    n.attributes["masked"] = std::int64_t{mask != nullptr};
  }

  /// True for [batch, seq, ...].
  bool has_rows(const ir::Shape& shape) const { return passes::has_rows(shape, {batch_, seq_}); }

  /// An operand that is [batch, seq, ...] but was made outside the packed region.
  void pack_operand(ir::Node& n, std::size_t i) {
    ir::Value* v = n.inputs[i];
    if (!v || packed_.contains(v) || !has_rows(v->type.shape)) return;
    if (v->is_constant() && v->constant->size() == 1) return;  // a scale
    ir::Value*& rows = gathered_[v];
    if (!rows) rows = pack(v, n);
    g_.set_input(&n, i, rows);
  }

  /// The rows of [batch, seq, ...], for a node.
  ir::Value* pack(ir::Value* v, ir::Node& user) {
    ir::Value* rows =
        g_.add(pack::op, {v, seq_offsets_}, {}, {v->type.dtype, rows_of(v->type.shape)}, &user);
    packed_.insert(rows);
    return rows;
  }

  /// The node in front of which a node stands after `producer` and its other unpacked results.
  ir::Node* next_after(const ir::Node& producer) const {
    auto it = std::find_if(g_.nodes().begin(), g_.nodes().end(),
                           [&](const auto& n) { return n.get() == &producer; });
    while (++it != g_.nodes().end() && (*it)->op == unpack::op) {
    }
    return it == g_.nodes().end() ? nullptr : it->get();
  }

  void unpack_remaining_uses() {
    for (ir::Value* v : packed_.in_order()) {
      ir::Value* unpacked = nullptr;
      const auto unpack = [&] {
        if (unpacked) return unpacked;
        ir::Shape shape{batch_, seq_};
        shape.insert(shape.end(), v->type.shape.begin() + 1, v->type.shape.end());
        return unpacked = g_.add(unpack::op, {v, seq_offsets_}, {}, {v->type.dtype, shape},
                                 next_after(*v->producer), v->name + ".unpacked");
      };
      for (ir::Node* user : std::vector<ir::Node*>(v->users)) {
        if (pools_.contains(user)) continue;
        if (user->op == unpack::op || !user->outputs.empty()) {
          const ir::Value* out = user->outputs.empty() ? nullptr : user->output();
          if (user->op == unpack::op || (out && packed_.contains(out))) continue;
        }
        for (std::size_t i = 0; i < user->inputs.size(); ++i)
          if (user->inputs[i] == v) g_.set_input(user, i, unpack());
      }
      for (ir::GraphOutput& out : g_.outputs())
        if (out.value == v) out.value = unpack();
    }
  }

  std::set<const ir::Value*> unpacked_rows() const {
    std::set<const ir::Value*> unpacked;
    for (const auto& n : g_.nodes())
      if (n->op == unpack::op) unpacked.insert(n->output());
    return unpacked;
  }

  /// Those of them that are made from attention that is {masks_rows}.
  std::set<const ir::Value*> rows_hidden() const {
    std::set<const ir::Value*> made, hidden;
    for (const auto& n : g_.nodes()) {
      if (!hides_rows_.contains(n.get()) &&
          std::ranges::none_of(n->inputs, [&](const ir::Value* in) { return made.contains(in); }))
        continue;
      made.insert(n->outputs.begin(), n->outputs.end());
      if (n->op == unpack::op) hidden.insert(n->output());
    }
    return hidden;
  }

  /// The first operator whose results for real tokens depend on rows of padding of `unpacked`, null
  /// if there is none.
  const ir::Node* unmasked_mixer(const std::set<const ir::Value*>& unpacked) const {
    return unpacked.empty() ? nullptr : reader_of_padding(g_, mask_, unpacked, {});
  }

  ir::Graph& g_;
  ir::Dim batch_, seq_;
  ir::Value *mask_ = nullptr, *seq_offsets_ = nullptr, *key_mask_ = nullptr;
  bool mask_is_length_ = false;
  PackedValues packed_;
  std::set<const ir::Value*> rows_of_tokens_;
  std::set<const ir::Node*> pools_, hides_rows_;
  std::map<const ir::Value*, ir::Value*> gathered_;  // the result of `pack` for each
};

}  // namespace

Pass pack_tokens() {
  return {"pack_tokens", [](ir::Graph& g) { return Packer(g).run(); }};
}

}  // namespace bertcl::passes
