// SPDX-License-Identifier: Apache-2.0
// Launch steps of Gather: rows of a [outer][axis][inner] view; of GatherElements and of GatherND.
#include <algorithm>
#include <utility>

#include "ir/input_role.hpp"
#include "kernels/contracts/move.hpp"
#include "ops/op.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// True for token ids as the caller gives them.
bool are_token_ids(const ir::Value* v) {
  while (v->producer && v->producer->op == "Cast") v = v->producer->inputs[0];
  return !v->producer && !v->is_constant() && ir::role_of_input(v->name) == ir::InputRole::ids;
}

/// Token ids tell the vocabulary by the table that they choose from.
void note_vocabulary(Plan& plan, const ir::Node& gather, const ir::Dim& axis) {
  if (!gather.inputs[0]->is_constant() || !are_token_ids(gather.inputs[1])) return;
  const std::int64_t rows = axis.constant();
  plan.word_rows = plan.word_rows > 0 ? std::min(plan.word_rows, rows) : rows;
}

/// The arguments that all three kernels take.
template <class Contract>
Contract gather_arguments(Builder& b, const ir::Node& node) {
  Contract arguments;
  arguments.data = b.in(node.inputs[0]);
  arguments.indices = b.in(node.inputs[1]);
  arguments.index_type = type_code(node.inputs[1]->type.dtype);
  arguments.out = b.out(node.output());
  arguments.error = b.error_flag();
  return arguments;
}

/// The kernel of `program` for the size of an element.
opencl::Kernel gather_kernel(Builder& b, const ir::Node& node, const char* program) {
  return b.kernel(program, fmt::format("{}_{}", program, ir::size_of(node.output()->type.dtype)));
}

Arithmetic gather_type(const ir::Node& node) {
  return Arithmetic::elements(node.output()->type.dtype);
}

void lower_gather(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& data = node.inputs[0]->type.shape;
  const auto [outer, axis, inner] = split(data, ops::axis_of(node, "axis", 0, data.size()));
  note_vocabulary(b.plan(), node, axis);
  const ir::Dim count = element_count(node.inputs[1]->type.shape);
  auto arguments = gather_arguments<kernels::Gather<Argument>>(b, node);
  arguments.outer = SizeExpr{outer};
  arguments.axis = SizeExpr{axis};
  arguments.inner = SizeExpr{inner};
  arguments.index_count = SizeExpr{count};
  arguments.rows_per_item = b.rows_per_item();
  b.launch(node, gather_type(node), "rows", gather_kernel(b, node, "gather"), arguments,
           {SizeExpr{outer * count, b.rows_per_item()}, SizeExpr{}, SizeExpr{}});
}

void lower_gather_elements(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& data = node.inputs[0]->type.shape;
  const ir::Shape& indices = node.inputs[1]->type.shape;
  const std::size_t axis = ops::axis_of(node, "axis", 0, data.size());
  for (std::size_t d = 0; d < data.size(); ++d)
    if (d != axis) b.limit(indices[d], data[d]);
  Strides strides = row_major(data);
  auto arguments = gather_arguments<kernels::GatherElements<Argument>>(b, node);
  arguments.extent = SizeExpr{data[axis]};
  arguments.axis_stride = SizeExpr{std::exchange(strides[axis], ir::Dim(0))};
  launch_strided(b, node, gather_type(node), "elements", gather_kernel(b, node, "gather_elements"),
                 arguments, coalesced({indices, {strides, row_major(indices)}}));
}

void lower_gather_nd(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& data = node.inputs[0]->type.shape;
  const ir::Shape& indices = node.inputs[1]->type.shape;
  const auto batch_dims = static_cast<std::size_t>(node.int_attribute("batch_dims", 0));
  const auto depth = static_cast<std::size_t>(indices.back().constant());
  const auto [batches, chosen, inner] = split(data, batch_dims, depth);
  SizeTable extents;
  for (std::size_t d = batch_dims; d < batch_dims + depth; ++d)
    extents.values.push_back(SizeExpr{data[d]});
  ir::Dim tuples(1);
  for (std::size_t d = batch_dims; d + 1 < indices.size(); ++d) tuples = tuples * indices[d];
  auto arguments = gather_arguments<kernels::GatherND<Argument>>(b, node);
  arguments.batches = SizeExpr{batches};
  arguments.tuples = SizeExpr{tuples};
  arguments.depth = static_cast<std::int32_t>(depth);
  arguments.extents = extents;
  arguments.inner = SizeExpr{inner};
  arguments.rows_per_item = b.rows_per_item();
  b.launch(node, gather_type(node), "rows", gather_kernel(b, node, "gather_nd"), arguments,
           {SizeExpr{batches * tuples, b.rows_per_item()}, SizeExpr{}, SizeExpr{}});
}

}  // namespace

void add_gather(LoweringTable& table) {
  table["Gather"] = lower_gather;
  table["GatherElements"] = lower_gather_elements;
  table["GatherND"] = lower_gather_nd;
}

}  // namespace bertcl::plan
