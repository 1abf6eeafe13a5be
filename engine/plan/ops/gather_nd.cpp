// SPDX-License-Identifier: Apache-2.0
// Launch step of GatherND.
#include "kernels/contracts/move.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_gather_nd(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& data = node.inputs[0]->type.shape;
  const ir::Type& indices = node.inputs[1]->type;
  const auto batch_dims = static_cast<std::size_t>(node.int_attribute("batch_dims", 0));
  const auto depth = static_cast<std::size_t>(indices.shape.back().constant());
  ir::Dim batches(1), tuples(1), inner(1);
  Table extents;
  for (std::size_t d = 0; d < data.size(); ++d) {
    if (d < batch_dims)
      batches = batches * data[d];
    else if (d < batch_dims + depth)
      extents.values.push_back(Size{data[d]});
    else
      inner = inner * data[d];
  }
  for (std::size_t d = batch_dims; d + 1 < indices.shape.size(); ++d)
    tuples = tuples * indices.shape[d];
  const ir::DType dtype = node.output()->type.dtype;
  b.launch(node, std::string(ir::name_of(dtype)), "rows",
           b.kernel("gather_nd", fmt::format("gather_nd_{}", ir::size_of(dtype))),
           kernels::GatherND<Argument>{.data = b.in(node.inputs[0]),
                                       .indices = b.in(node.inputs[1]),
                                       .index_type = type_code(indices.dtype),
                                       .out = b.out(node.output()),
                                       .batches = Size{batches},
                                       .tuples = Size{tuples},
                                       .depth = static_cast<std::int32_t>(depth),
                                       .extents = extents,
                                       .inner = Size{inner},
                                       .error = b.error_flag(),
                                       .rows_per_item = b.rows_per_item()},
           {Size{batches * tuples, b.rows_per_item()}, Size{}, Size{}});
}

}  // namespace

void add_gather_nd(LoweringTable& table) { table["GatherND"] = lower_gather_nd; }

}  // namespace bertcl::plan
