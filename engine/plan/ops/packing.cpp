// SPDX-License-Identifier: Apache-2.0
// The borders of packed tokens: pack_inputs (filled by the host during upload), pack, unpack.
#include "kernels/contracts/move.hpp"
#include "ops/operands.hpp"
#include "plan/lowering_table.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_pack_inputs(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::pack_inputs;
  std::vector<Input>& inputs = b.plan().inputs;
  const auto name = [&](std::size_t i) { return node.input(i) ? node.inputs[i]->name : ""; };
  if (node.input(o::ids)) {
    inputs.push_back({InputKind::packed_ids, name(o::ids), b.add_slot(node.outputs[0])});
    inputs.push_back({InputKind::positions, name(o::positions), b.add_slot(node.outputs[1])});
  } else {
    b.plan().packed_rows = ir::parse_shape(node.string_attribute("rows")).value();
  }
  inputs.push_back({InputKind::seq_offsets, "", b.add_slot(node.outputs[2])});
  inputs.push_back({InputKind::key_mask, name(o::mask), b.add_slot(node.outputs[3])});
  if (node.outputs.size() > 4)
    inputs.push_back({InputKind::packed_token_types, name(o::types), b.add_slot(node.outputs[4])});
  b.plan().mask_input = name(o::mask);
  b.plan().mask_is_length = node.has("mask_is_length");
  if (node.has("padding_reader")) b.plan().padding_reader = node.string_attribute("padding_reader");
}

/// Of a row of [batch, seq, ...].
std::int32_t row_bytes(const ir::Type& padded) {
  std::int64_t bytes = static_cast<std::int64_t>(ir::size_of(padded.dtype));
  for (std::size_t i = 2; i < padded.shape.size(); ++i) bytes *= padded.shape[i].constant();
  return static_cast<std::int32_t>(bytes);
}

/// pack and unpack move rows between [batch, seq, ...] and [tokens, ...].
void lower_move(Builder& b, const ir::Node& node, const ir::Value* padded, auto arguments) {
  const ir::Shape& shape = padded->type.shape;
  const std::int32_t rows = b.chunk() / 64 + 1;
  arguments.seq_offsets = b.in(node.inputs[1]);
  arguments.batch = SizeExpr{shape[0]};
  arguments.seq = SizeExpr{shape[1]};
  arguments.row_bytes = row_bytes(padded->type);
  arguments.rows_per_item = rows;
  b.launch(node, Arithmetic::copy, "rows", b.kernel(node.op, node.op), arguments,
           {SizeExpr{shape[0] * shape[1], rows}, SizeExpr{}, SizeExpr{}});
}

void lower_pack(Builder& b, const ir::Graph&, const ir::Node& node) {
  kernels::Pack<Argument> arguments;
  arguments.padded = b.in(node.inputs[0]), arguments.packed = b.out(node.output());
  lower_move(b, node, node.inputs[0], std::move(arguments));
}

void lower_unpack(Builder& b, const ir::Graph&, const ir::Node& node) {
  kernels::Unpack<Argument> arguments;
  arguments.packed = b.in(node.inputs[0]), arguments.padded = b.out(node.output());
  arguments.second_bytes = 0;
  if (node.outputs.size() == 2) {
    arguments.second = b.out(node.outputs[1]);
    arguments.second_bytes = row_bytes(node.outputs[1]->type);
  }
  lower_move(b, node, node.output(), std::move(arguments));
}

}  // namespace

void add_packing(LoweringTable& table) {
  table[ops::operands::pack_inputs::op] = lower_pack_inputs;
  table[ops::operands::pack::op] = lower_pack;
  table[ops::operands::unpack::op] = lower_unpack;
}

}  // namespace bertcl::plan
