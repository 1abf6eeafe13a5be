// SPDX-License-Identifier: Apache-2.0
// Scores of relative positions that are added to those of attention.
#include "passes/recognize/attention_positions.hpp"

#include <algorithm>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/node_queries.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// Takes factors off `v` and, where it is allowed, transposes of its last two axes.
ir::Value* strip_factors(ir::Value* v, PositionTerm& term, bool transposes) {
  while (ir::Node* n = v->producer) {
    if (const auto factor = scaled(*n)) {
      term.scale *= factor->factor;
      v = factor->x;
    } else if (transposes && n->op == "Transpose" &&
               n->ints_attribute("perm") == Permutation{0, 1, 3, 2}) {
      term.of_keys = !term.of_keys;
      v = n->inputs[0];
    } else {
      break;
    }
    term.nodes.push_back(n);
  }
  return v;
}

/// [1, .., seq, seq] of integers that depend on sizes alone, for scores of that shape; without what
/// repeats them. Null for anything else.
ir::Value* index_under(ir::Value* v, const ir::Shape& scores) {
  while (v->producer && v->producer->op == "Expand") v = v->producer->inputs[0];
  const ir::Shape& shape = v->type.shape;
  if (shape.size() < 2 || !std::equal(shape.end() - 2, shape.end(), scores.end() - 2))
    return nullptr;
  const bool once =
      std::all_of(shape.begin(), shape.end() - 2, [](const ir::Dim& d) { return d == ir::Dim(1); });
  const bool integer = v->type.dtype == ir::DType::i32 || v->type.dtype == ir::DType::i64;
  return once && integer && ops::depends_on_sizes_only(v) ? v : nullptr;
}

/// The constant [heads, size, count] of `v`, which may be dequantized.
bool is_position_table(const ir::Value* v, const HeadsOperand& heads) {
  const ir::Node* dq = v->producer;
  const bool constant = v->is_constant() || (dq && dq->op == "DequantizeLinear" &&
                                             dq->inputs[0]->is_constant() && is_per_tensor(*dq));
  const ir::Shape& shape = v->type.shape;
  return constant && v->type.dtype == ir::DType::f32 && shape.size() == 3 &&
         shape[0] == heads.count && shape[1] == heads.size && shape[2].is_constant();
}

/// The index as i32, which all layers share.
ir::Value* as_i32(ir::Graph& g, ir::Value* index, ir::Node* before) {
  if (index->type.dtype == ir::DType::i32) return index;
  for (ir::Node* user : index->users)
    if (user->op == "Cast" && user->output()->type.dtype == ir::DType::i32 &&
        comes_before(g, user, before))
      return user->output();
  return g.add("Cast", {index}, {{"to", "i32"}}, {ir::DType::i32, index->type.shape}, before);
}

}  // namespace

std::optional<PositionTerm> match_position_term(ir::Value* v) {
  PositionTerm term;
  const ir::Shape scores = v->type.shape;
  if (scores.size() != 4 || scores[2] != scores[3]) return std::nullopt;
  v = strip_factors(v, term, /*transposes=*/true);
  ir::Node* gather = v->producer;
  if (!gather || gather->op != "GatherElements") return std::nullopt;
  if (!ops::is_last_axis(*gather, 0, scores)) return std::nullopt;
  term.index = index_under(gather->inputs[1], scores);
  v = strip_factors(gather->inputs[0], term, /*transposes=*/false);
  ir::Node* matmul = v->producer;
  if (!term.index || !matmul || matmul->op != "MatMul") return std::nullopt;
  term.nodes.insert(term.nodes.end(), {gather, matmul});
  term.positions = matmul->inputs[1];
  if (!match_split_heads(matmul->inputs[0], {0, 2, 1, 3}, term.heads, term.nodes))
    return std::nullopt;
  if (term.heads.has_steps() || term.heads.shared != 1 ||
      !is_position_table(term.positions, term.heads))
    return std::nullopt;
  const ir::Shape& rows = term.heads.hidden->type.shape;
  if (rows[0] != scores[0] || term.heads.count != scores[1] || rows[1] != scores[2])
    return std::nullopt;
  term.scale *= term.heads.scale;
  return term;
}

ir::Value* add_position_scores(ir::Graph& g, const std::vector<PositionTerm>& terms,
                               ir::Node* before) {
  namespace o = ops::operands::position_scores;
  ir::Value* sum = nullptr;
  for (const PositionTerm& term : terms) {
    const HeadsOperand& heads = term.heads;
    std::vector<ir::Value*> operands{heads.hidden, term.positions, as_i32(g, term.index, before)};
    std::vector<ir::Node*> covered = term.nodes;
    if (sum) operands.push_back(sum);
    if (const auto d = per_tensor_dequantized(heads.hidden)) {
      operands[o::x] = d->quantized;
      set_operand(operands, o::x_scale, d->scale);
      set_operand(operands, o::x_zero_point, d->zero_point);
      covered.push_back(d->node);
      if (const auto p = per_tensor_dequantized(term.positions)) {
        operands[o::positions] = p->quantized;
        set_operand(operands, o::positions_scale, p->scale);
        set_operand(operands, o::positions_zero_point, p->zero_point);
        covered.push_back(p->node);
      }
    }
    ir::Attributes attributes{{"heads", heads.count.constant()}, {"scale", term.scale}};
    if (term.of_keys) attributes["of_keys"] = 1;
    const ir::Shape& rows = heads.hidden->type.shape;
    sum = g.add(position_scores::op, operands, std::move(attributes),
                {ir::DType::f32, {rows[0], heads.count, rows[1], rows[1]}}, before);
    sum->producer->sources = sources_of(covered);
  }
  return sum;
}

}  // namespace bertcl::passes
