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
// word is f32[vocabulary, hidden].
#include "ir/input_role.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

struct Embedding {
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

/// The graph input that gives an index operand, through Cast.
ir::Value* index_input(ir::Value* v) {
  while (v->producer && v->producer->op == "Cast") v = v->producer->inputs[0];
  return v->producer || v->is_constant() ? nullptr : v;
}

/// Sorts one term of the sum into the embedding; false if it is none of the three.
bool take_term(ir::Graph& g, ir::Value* term, Embedding& e) {
  if (term->is_constant()) {  // a row of the type table that somebody folded: f32[1, 1, hidden]
    if (e.type || term->type.shape.empty() ||
        element_count(term->type.shape) != term->type.shape.back())
      return false;
    e.type = g.add_constant("token_type_row",
                            term->constant->reshaped({1, term->type.shape.back().constant()}));
    return true;
  }
  ir::Node* n = term->producer;
  if (!n) return false;
  e.nodes.push_back(n);
  if (n->op == "Slice" && n->inputs[0]->is_constant() && !e.position) {
    // position rows taken directly: table[1, P, hidden] -> [1, seq, hidden]
    const ir::Shape& in = n->inputs[0]->type.shape;
    if (in.size() != 3 || in[0] != ir::Dim(1) || in[2] != term->type.shape.back()) return false;
    e.position = g.add_constant(
        "position_table", n->inputs[0]->constant->reshaped({in[1].constant(), in[2].constant()}));
    return true;
  }
  if (n->op != "Gather" || n->int_attribute("axis", 0) != 0 || !n->inputs[0]->is_constant() ||
      n->inputs[0]->type.shape.size() != 2)
    return false;
  ir::Value* table = n->inputs[0];
  ir::Value* index = n->inputs[1];
  if (!e.position && ops::is_position_ids(g, index)) {
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

bool find_embedding_at(ir::Graph& g, ir::Node& norm) {
  if (norm.op != "LayerNormalization" || !normalizes_last_axis(norm)) return false;
  std::vector<ir::Value*> terms;
  Embedding e;
  collect_terms(norm.inputs[0], terms, e.nodes);
  if (terms.size() < 2 || terms.size() > 3) return false;
  for (ir::Value* term : terms)
    if (!take_term(g, term, e)) return false;
  if (!e.ids || !e.position) return false;
  if (e.positions && e.positions->type.shape != e.ids->type.shape) return false;
  Match m;
  m.nodes = e.nodes;
  m.nodes.push_back(&norm);
  replace(g, &norm, m, "embed_norm",
          {e.ids, e.types, e.positions, e.word, e.type, e.position, norm.inputs[1], norm.input(2)},
          {{"epsilon", norm.float_attribute("epsilon", 1e-5)}});
  return true;
}

}  // namespace

Pass find_embedding() {
  return {"find_embedding", [](ir::Graph& g) { return rewrite_all(g, find_embedding_at); }};
}

}  // namespace bertcl::passes
