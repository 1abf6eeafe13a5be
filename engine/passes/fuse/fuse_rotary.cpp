// SPDX-License-Identifier: Apache-2.0
// Rotary positions of queries and keys become one op, and so do the linears before them.
//
//   x -> linear -> rotary -> q --\                x -> linear -> rotary -> qk
//   x -> linear -> rotary -> k --- attention      x -> linear -> v
//   x -> linear -> v ------------+       becomes  attention(qk, qk, v) {offsets = [0, h, 0]}
//
// Two fewer launches, and x is read once less. Scales become one per column, so that q and k keep
// their own.
#include <array>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/concatenate_linears.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

using Two = std::array<ir::Node*, 2>;

/// True for the result of a node that has one reader.
bool has_one_reader(const ir::Graph& g, const ir::Value* v) {
  return v->producer && g.used_once(v);
}

/// Of the same element type and tables, and so of the same size of heads.
bool same_angles(const Two& rotations) {
  const ir::Node &q = *rotations[0], &k = *rotations[1];
  return q.inputs[rotary::cos] == k.inputs[rotary::cos] &&
         q.inputs[rotary::sin] == k.inputs[rotary::sin] && !q.input(rotary::seq_offsets) &&
         !k.input(rotary::seq_offsets) && q.output()->type.dtype == k.output()->type.dtype;
}

bool fuse_rotary_at(ir::Graph& g, ir::Node& node) {
  if (!ops::traits(node).is_attention || node.has("offsets")) return false;
  Two rotations{}, linears{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!has_one_reader(g, node.inputs[i])) return false;
    rotations[i] = node.inputs[i]->producer;
    if (rotations[i]->op != rotary::op || !has_one_reader(g, rotations[i]->inputs[rotary::x]))
      return false;
    linears[i] = rotations[i]->inputs[rotary::x]->producer;
  }
  if (!same_angles(rotations) || !can_be_concatenated(linears)) return false;
  ir::Node* linear = concatenate_linears(g, linears, ".qk");

  const ir::Node& first = *rotations[0];
  const ir::Dim hidden = first.output()->type.shape.back();
  std::vector<ir::Value*> operands = first.inputs;
  operands[rotary::x] = linear->output();
  const auto concat = [&](std::size_t operand, ir::DType dtype) {
    std::array<ir::Value*, 2> parts{};
    for (std::size_t i = 0; i < 2; ++i)
      parts[i] = as_one_per_column(g, rotations[i]->input(operand),
                                   rotations[i]->output()->type.shape.back(), dtype);
    return concatenate_constants(g, parts, ".qk");
  };
  ir::Type type = first.output()->type;
  if (first.input(rotary::out_scale)) {
    set_operand(operands, rotary::out_scale, concat(rotary::out_scale, ir::DType::f32));
    set_operand(operands, rotary::out_zero_point, concat(rotary::out_zero_point, type.dtype));
  }
  type.shape.back() = linear->output()->type.shape.back();
  const std::int64_t heads = first.int_attribute("heads") + rotations[1]->int_attribute("heads");
  // Before attention: after the operands of both.
  ir::Node* made = g.add_node(rotary::op, operands, {{"heads", heads}},
                              {{first.output()->name + ".qk", type}}, &node);
  made->sources = sources_of({rotations[0], rotations[1]});
  for (std::size_t i = 0; i < 2; ++i) g.set_input(&node, i, made->output());
  node.attributes["offsets"] = std::vector<std::int64_t>{0, hidden.constant(), 0};
  return true;
}

}  // namespace

Pass fuse_rotary() { return rewriting("fuse_rotary", fuse_rotary_at); }

}  // namespace bertcl::passes
