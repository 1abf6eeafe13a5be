// SPDX-License-Identifier: Apache-2.0
// Rows of padding that attention hides need not be zero.
//
//   LayerNormalization -> * mask [batch, seq, 1] -> linear, + residual
//   becomes
//   LayerNormalization -> linear, + residual
//
// where `mask` is 1 for the tokens that every attention of the graph attends and 0 for the others,
// as DeBERTa's embeddings have it. Results for padding are lost: attention gets {masks_rows = 1}.
// Where an operator mixes them with others without the mask, the rows stay zero.
#include <algorithm>
#include <set>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/padding_readers.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

std::vector<ir::Node*> attentions(const ir::Graph& g) {
  std::vector<ir::Node*> all;
  for (const auto& n : g.nodes())
    if (ops::traits(*n).is_attention) all.push_back(n.get());
  return all;
}

bool is_read_by_layer(const ir::Graph& g, const ir::Value* v) {
  return !g.is_output(v) && !v->users.empty() &&
         std::ranges::all_of(v->users, [](const ir::Node* n) {
           return n->op == linear::op || n->op == "Add" || n->op == "QuantizeLinear" ||
                  n->op == "DynamicQuantizeLinear";
         });
}

bool drop_row_mask_at(ir::Graph& g, ir::Node& mul) {
  if (mul.op != "Mul" || !is_read_by_layer(g, mul.output())) return false;
  for (const int i : {0, 1}) {
    ir::Value* x = mul.inputs[i];
    if (!x->producer || x->producer->op != "LayerNormalization" || x->type != mul.output()->type)
      continue;
    const ir::Value* mask = ops::mask_of_rows(g, mul.inputs[1 - i]);
    const std::vector<ir::Node*> all = attentions(g);
    if (!mask || all.empty() || std::ranges::any_of(all, [&](const ir::Node* n) {
          return n->input(attention::mask) != mask || n->has("mask_is_length");
        }))
      continue;
    std::set<const ir::Node*> attention(all.begin(), all.end());
    for (const auto& n : g.nodes())
      if (n->op == position_scores::op) attention.insert(n.get());
    if (reader_of_padding(g, mask, {mul.output()}, attention)) return false;
    for (ir::Node* n : all) n->attributes["masks_rows"] = 1;
    x->producer->sources = sources_of({x->producer, &mul});
    g.replace_uses(mul.output(), x);
    return true;
  }
  return false;
}

}  // namespace

Pass drop_row_mask() { return rewriting("drop_row_mask", drop_row_mask_at); }

}  // namespace bertcl::passes
