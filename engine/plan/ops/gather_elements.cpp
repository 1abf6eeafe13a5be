// SPDX-License-Identifier: Apache-2.0
// Launch step of GatherElements.
#include "kernels/contracts/move.hpp"
#include "plan/ops/ops.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_gather_elements(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& data = node.inputs[0]->type.shape;
  const ir::Type& indices = node.inputs[1]->type;
  std::int64_t axis = node.int_attribute("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(data.size());
  const auto at = static_cast<std::size_t>(axis);
  for (std::size_t d = 0; d < data.size(); ++d)
    if (d != at) b.limit(indices.shape[d], data[d]);
  Strides strides = row_major(data);
  const ir::Dim axis_stride = strides[at];
  strides[at] = ir::Dim(0);
  const View view = coalesced({indices.shape, {strides, row_major(indices.shape)}});
  const ir::Dim count = element_count(indices.shape);
  const ir::DType dtype = node.output()->type.dtype;
  b.launch(node, std::string(ir::name_of(dtype)), "elements",
           b.kernel("gather_elements", fmt::format("gather_elements_{}", ir::size_of(dtype))),
           kernels::GatherElements<Argument>{.data = b.in(node.inputs[0]),
                                             .indices = b.in(node.inputs[1]),
                                             .index_type = type_code(indices.dtype),
                                             .out = b.out(node.output()),
                                             .shape = table_of(view),
                                             .rank = static_cast<std::int32_t>(view.extents.size()),
                                             .extent = Size{data[at]},
                                             .axis_stride = Size{axis_stride},
                                             .error = b.error_flag(),
                                             .count = Size{count},
                                             .chunk = b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
}

}  // namespace

void add_gather_elements(LoweringTable& table) { table["GatherElements"] = lower_gather_elements; }

}  // namespace bertcl::plan
