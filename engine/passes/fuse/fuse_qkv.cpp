// SPDX-License-Identifier: Apache-2.0
// The three linears before attention become one.
//
//   x -> linear -> q --\                     x -> linear -> qkv[.., 3*hidden]
//   x -> linear -> k --- attention   becomes   attention(qkv, qkv, qkv) {offsets = [0, h, 2h]}
//   x -> linear -> v --+
//
// One launch, and x is read once. Scales become one per column, so q, k and v keep their own. A
// file that has one linear already splits its result, which attention reads in place:
//
//   qkv -> Split -> q, k, v -> attention
//   becomes
//   attention(qkv, qkv, qkv) {offsets = [0, h, 2h]}
//
// The scores of relative positions that are added to those of this attention read q and k, too:
// position_scores(qkv, ..) {offset = 0 or h}.
#include <algorithm>
#include <array>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/concatenate_linears.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// The columns of `part` among those that Split takes apart along the last axis; -1 if it does not.
std::int64_t first_column(const ir::Value* part) {
  const ir::Node& split = *part->producer;
  if (!ops::is_last_axis(split, 0, part->type.shape)) return -1;
  std::int64_t column = 0;
  for (const ir::Value* v : split.outputs) {
    if (v == part) return column;
    if (!v->type.shape.back().is_constant()) return -1;
    column += v->type.shape.back().constant();
  }
  return -1;
}

/// The operands of attention are parts of one value.
bool read_in_place(ir::Graph& g, ir::Node& node) {
  if (!ops::traits(node).is_attention || node.has("offsets")) return false;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Node* split = node.inputs[i]->producer;
    if (!split || split->op != "Split" || split != node.inputs[0]->producer) return false;
    offsets.push_back(first_column(node.inputs[i]));
    if (offsets.back() < 0) return false;
  }
  ir::Value* whole = node.inputs[0]->producer->inputs[0];
  if (!whole->type.shape.back().is_constant()) return false;
  for (std::size_t i = 0; i < 3; ++i) g.set_input(&node, i, whole);
  node.attributes["offsets"] = offsets;
  return true;
}

/// The scores of relative positions that are added to those of `attention`.
std::vector<ir::Node*> position_scores_of(const ir::Node& attention) {
  std::vector<ir::Node*> all;
  const ir::Value* sum =
      attention.input(attention.op == attention_q::op ? +attention_q::bias : +attention::bias);
  while (sum && sum->producer && sum->producer->op == position_scores::op) {
    all.push_back(sum->producer);
    sum = sum->producer->input(position_scores::addend);
  }
  return all;
}

bool fuse_qkv_at(ir::Graph& g, ir::Node& node) {
  if (!ops::traits(node).is_attention || node.has("offsets")) return false;
  std::vector<ir::Node*> readers = position_scores_of(node);
  readers.push_back(&node);
  std::array<ir::Node*, 3> linears{};
  for (std::size_t i = 0; i < 3; ++i) {
    linears[i] = node.inputs[i]->producer;
    if (!linears[i] || g.is_output(node.inputs[i])) return false;
    for (const ir::Node* user : node.inputs[i]->users)
      if (std::ranges::find(readers, user) == readers.end()) return false;
  }
  if (!can_be_concatenated(linears)) return false;
  ir::Node* made = concatenate_linears(g, linears, ".qkv");
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 0; i < 2; ++i)
    offsets.push_back(offsets.back() + linears[i]->inputs[1]->type.shape[1].constant());
  readers.pop_back();
  for (ir::Node* reader : readers)
    for (std::size_t i = 0; i < 3; ++i)
      if (reader->inputs[position_scores::x] == node.inputs[i]) {
        g.set_input(reader, position_scores::x, made->output());
        reader->attributes["offset"] = offsets[i];
        break;
      }
  for (std::size_t i = 0; i < 3; ++i) g.set_input(&node, i, made->output());
  node.attributes["offsets"] = offsets;
  return true;
}

}  // namespace

Pass fuse_qkv() {
  return rewriting("fuse_qkv", [](ir::Graph& g, ir::Node& node) {
    return read_in_place(g, node) || fuse_qkv_at(g, node);
  });
}

}  // namespace bertcl::passes
