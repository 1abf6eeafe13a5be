// SPDX-License-Identifier: Apache-2.0
// The three embedding tables and the LayerNorm after them become one op.
//
//   Gather(word, input_ids) + Gather(type, token_type_ids) + Gather(position, 0..seq-1)
//     -> LayerNormalization
//   becomes
//   embed_norm(input_ids, token_type_ids, position_ids, word, type, position, gamma, beta)
//
// token_type_ids may be absent (row 0 of the type table counts), and so may the type table.
// position_ids is absent where the positions are 0..seq-1, else the input that the caller gives;
// word is f32[vocabulary, hidden]. input_ids is [batch, seq], and so are the other inputs;
// attention of the graph has these rows, too, since tokens are packed for one batch of sequences.
// For the same reason a second embedding of the graph, as that of a bi-encoder, stays as it is.
#include <algorithm>
#include <numeric>
#include <set>

#include "ir/input_role.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

struct Embedding {
  ir::Dim seq, hidden;
  ir::Value *ids = nullptr, *types = nullptr, *positions = nullptr;
  ir::Value *word = nullptr, *type = nullptr, *position = nullptr;
  std::vector<ir::Node*> nodes;
};

void collect_terms(ir::Value* v, std::vector<ir::Value*>& terms, std::vector<ir::Node*>& nodes) {
  ir::Node* n = v->producer;
  if (n && n->op == "Add") {
    nodes.push_back(n);
    collect_terms(n->inputs[0], terms, nodes);
    collect_terms(n->inputs[1], terms, nodes);
  } else {
    terms.push_back(v);
  }
}

/// The graph input of integers that gives an index operand, through Casts that keep every index:
/// one to bool, or to 8 bits, may not.
ir::Value* index_input(ir::Value* v) {
  while (v->producer && v->producer->op == "Cast" && ops::types::indices.contains(v->type.dtype))
    v = v->producer->inputs[0];
  const bool is_input = !v->producer && !v->is_constant();
  return is_input && ops::types::integers.contains(v->type.dtype) ? v : nullptr;
}

/// Takes a row of the type table that somebody folded, f32[1, 1, hidden], or the rows of the
/// positions of a sequence of fixed length, f32[1, seq, hidden].
bool take_constant(ir::Graph& g, const ir::Value& term, Embedding& e) {
  const ir::Shape& shape = term.type.shape;
  const ir::Dim rows = shape.size() < 2 ? ir::Dim(1) : shape[shape.size() - 2];
  if (element_count(shape) != rows * e.hidden) return false;
  const bool is_type = rows == ir::Dim(1);
  ir::Value*& table = is_type ? e.type : e.position;
  if (table || (!is_type && rows != e.seq)) return false;
  table = g.add_constant(is_type ? "token_type_row" : "position_table",
                         term.constant->reshaped({rows.constant(), e.hidden.constant()}));
  return true;
}

/// Takes a Slice of a table [1, P, hidden] as the position table if it has one row per position,
/// starting at a constant row. The end may be computed, so the Slice is run on row numbers.
bool take_slice(ir::Graph& g, const ir::Value& term, Embedding& e) {
  ir::Node& n = *term.producer;
  const ir::Shape& in = n.inputs[0]->type.shape;
  const auto start = only_integer(n, "starts", 1);
  if (e.position || !n.inputs[0]->is_constant() || in.size() != 3 || in[0] != ir::Dim(1) ||
      only_integer(n, "axes", 3) != 1 || start.value_or(-1) < 0)
    return false;
  std::vector<std::int64_t> numbers(in[1].constant());
  std::iota(numbers.begin(), numbers.end(), -*start);
  std::vector<ir::Value*> operands = n.inputs;
  operands[0] = g.add_constant("rows", ir::Tensor::of({1, in[1].constant()}, numbers));
  ir::Value* rows =
      g.add("Slice", operands, n.attributes, {ir::DType::i64, {1, term.type.shape[1]}}, &n);
  // A sum, as the term itself is in one: a single row is not that of each position.
  const ir::Type type{ir::DType::i64, {1, e.seq}};
  ir::Value* zero = g.add_constant("zero", ir::Tensor::zeros(ir::DType::i64, {1, 1}));
  ir::Value* zeros = g.add("Expand", {zero}, {}, type, &n);
  ir::Value* sum = g.add("Add", {rows, zeros}, {}, type, &n);
  const bool found = ops::is_position_ids(g, sum);
  for (ir::Value* v : {sum, zeros, rows}) g.erase(v->producer);
  if (!found) return false;
  const std::int64_t count = in[1].constant() - *start, hidden = in[2].constant();
  const auto all = n.inputs[0]->constant->as<float>();
  e.position = g.add_constant(
      "position_table",
      *start == 0
          ? n.inputs[0]->constant->reshaped({count, hidden})
          : ir::Tensor::of<float>({count, hidden}, {all.begin() + *start * hidden, all.end()}));
  return true;
}

/// Sorts one term of the sum into the embedding; false if it is none of the three.
bool take_term(ir::Graph& g, ir::Value* term, Embedding& e) {
  if (term->type.shape.empty() || term->type.shape.back() != e.hidden) return false;
  if (term->is_constant()) return take_constant(g, *term, e);
  ir::Node* n = term->producer;
  if (!n) return false;
  e.nodes.push_back(n);
  if (n->op == "Slice") return take_slice(g, *term, e);
  if (n->op != "Gather" || n->int_attribute("axis", 0) != 0 || !n->inputs[0]->is_constant() ||
      n->inputs[0]->type.shape.size() != 2)
    return false;
  ir::Value* table = n->inputs[0];
  ir::Value* index = n->inputs[1];
  if (!e.position && !index->type.shape.empty() && index->type.shape.back() == e.seq &&
      ops::is_position_ids(g, index)) {
    e.position = table;
    return true;
  }
  ir::Value* input = index_input(index);
  if (!input) {
    if (e.type || !ops::is_all_zero(g, index)) return false;
    e.type = table;  // no token types: everywhere row 0
    return true;
  }
  const ir::InputRole role = ir::role_of_input(input->name);
  if (role == ir::InputRole::token_types && !e.types) {
    e.types = input;
    e.type = table;
    return true;
  }
  if (role == ir::InputRole::positions) {
    if (e.position) return false;
    e.positions = input;
    e.position = table;
    return true;
  }
  if (e.ids) return false;
  e.ids = input;
  e.word = table;
  return true;
}

/// True if no attention of the graph has rows of other values [batch, seq, ...].
bool is_encoder_of(const ir::Graph& g, const ir::Shape& ids) {
  return std::ranges::all_of(g.nodes(), [&](const auto& n) {
    return !ops::traits(*n).is_attention || has_rows(n->inputs[attention::q]->type.shape, ids);
  });
}

/// False if tokens would be packed by the mask of others: there is attention under a mask, but none
/// that reads `rows`, at any distance.
bool is_packed_by_own_mask(const ir::Graph& g, const ir::Value* rows) {
  const auto is_attention = [](const auto& n) { return ops::traits(*n).is_attention; };
  if (std::ranges::none_of(
          g.nodes(), [&](const auto& n) { return is_attention(n) && n->input(attention::mask); }))
    return true;
  std::set<const ir::Value*> reached{rows};
  for (const auto& n : g.nodes()) {
    if (std::ranges::none_of(n->inputs, [&](auto* in) { return reached.contains(in); })) continue;
    if (is_attention(n)) return true;
    reached.insert(n->outputs.begin(), n->outputs.end());
  }
  return false;
}

bool find_embedding_at(ir::Graph& g, ir::Node& norm) {
  if (norm.op != "LayerNormalization" || !normalizes_last_axis(norm)) return false;
  if (std::ranges::any_of(g.nodes(), [](const auto& n) { return n->op == embed_norm::op; }))
    return false;
  const ir::Shape& sum = norm.inputs[0]->type.shape;
  if (sum.size() != 3) return false;
  const ir::Shape ids{sum[0], sum[1]};
  std::vector<ir::Value*> terms;
  Embedding e;
  e.seq = sum[1], e.hidden = sum[2];
  collect_terms(norm.inputs[0], terms, e.nodes);
  if (terms.size() < 2 || terms.size() > 3) return false;
  for (ir::Value* term : terms)
    if (!take_term(g, term, e)) return false;
  if (!e.ids || !e.position) return false;
  for (const ir::Value* input : {e.ids, e.types, e.positions})
    if (input && input->type.shape != ids) return false;
  if (!is_encoder_of(g, ids) || !is_packed_by_own_mask(g, norm.output())) return false;
  e.nodes.push_back(&norm);
  replace(g, &norm, e.nodes, embed_norm::op,
          {e.ids, e.types, e.positions, e.word, e.type, e.position, norm.inputs[1], norm.input(2)},
          {{"epsilon", norm.float_attribute("epsilon", 1e-5)}});
  return true;
}

}  // namespace

Pass find_embedding() { return rewriting("find_embedding", find_embedding_at); }

}  // namespace bertcl::passes
