// SPDX-License-Identifier: Apache-2.0
// Launch step of CumSum along an axis that is known.
#include "kernels/contracts/reduce.hpp"
#include "plan/ops/ops.hpp"

namespace bertcl::plan {
namespace {

void lower_cumsum(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value* axis_operand = node.inputs[1];
  if (!axis_operand->is_constant())
    throw Error(fmt::format("{}: axis '{}' is not constant", node.describe(), axis_operand->name));
  const ir::Type& type = node.output()->type;
  const auto rank = static_cast<std::int64_t>(type.shape.size());
  std::int64_t axis = axis_operand->constant->to_ints().at(0);
  if (axis < -rank || axis >= rank)
    throw Error(
        fmt::format("{}: axis {} is out of range for rank {}", node.describe(), axis, rank));
  if (axis < 0) axis += rank;
  const char* suffix = type.dtype == ir::DType::f32   ? "f32"
                       : type.dtype == ir::DType::i32 ? "i32"
                       : type.dtype == ir::DType::i64 ? "i64"
                                                      : nullptr;
  if (!suffix)
    throw Error(fmt::format("{}: no kernel for element type {} (supported: f32, i32, i64)",
                            node.describe(), ir::name_of(type.dtype)));
  ir::Dim outer(1), inner(1);
  for (std::int64_t d = 0; d < rank; ++d) {
    const ir::Dim& extent = type.shape[static_cast<std::size_t>(d)];
    if (d < axis) outer = outer * extent;
    if (d > axis) inner = inner * extent;
  }
  const ir::Dim lines = outer * inner;
  const std::int32_t lines_per_item = b.rows_per_item();
  b.launch(node, std::string(ir::name_of(type.dtype)), "lines",
           b.kernel("cumsum", fmt::format("cumsum_{}", suffix)),
           kernels::CumSum<Argument>{
               .x = b.in(node.inputs[0]),
               .out = b.out(node.output()),
               .outer = Size{outer},
               .size = Size{type.shape[static_cast<std::size_t>(axis)]},
               .inner = Size{inner},
               .exclusive = static_cast<std::int32_t>(node.int_attribute("exclusive", 0)),
               .reverse = static_cast<std::int32_t>(node.int_attribute("reverse", 0)),
               .chunk = lines_per_item},
           {Size{lines, lines_per_item}, Size{}, Size{}});
}

}  // namespace

void add_cumsum(LoweringTable& table) { table["CumSum"] = lower_cumsum; }

}  // namespace bertcl::plan
