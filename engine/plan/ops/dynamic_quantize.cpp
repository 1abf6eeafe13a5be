// SPDX-License-Identifier: Apache-2.0
// Launch steps of DynamicQuantizeLinear, the range of the tensor and then its bytes, and of
// quantize_rows, which needs one.
#include "kernels/contracts/quantize.hpp"
#include "kernels/contracts/rows.hpp"
#include "kernels/shared_numbers.hpp"
#include "kernels/variants.hpp"
#include "ops/operands.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/row_kernels.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

void launch_groups(Step& step, SizeExpr groups) {
  groups.times = kernels::kRangeItems;
  step.global[0] = groups;
  step.local[0] = static_cast<std::size_t>(kernels::kRangeItems);
}

void lower_dynamic_quantize(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Dim count = element_count(node.inputs[0]->type.shape);
  const auto choice = choose(b, node, kernels::dynamic_quantize_variants());
  const kernels::KernelVariant& variant = *choice.variant;
  const Argument ranges =
      b.scratch_out(node.output()->name + ".ranges",
                    {ir::DType::f32, {ir::Dim(2), ir::Dim(kernels::kRangeParts)}});
  Step& range =
      b.launch(node, Arithmetic::fp32, "range", b.kernel(variant.program, "dynamic_range"),
               kernels::DynamicRange<Argument>{
                   .x = b.in(node.inputs[0]), .ranges = ranges, .count = SizeExpr{count}},
               {SizeExpr{ir::Dim(kernels::kRangeParts)}, SizeExpr{}, SizeExpr{}});
  if (variant.divides) launch_groups(range, SizeExpr{ir::Dim(kernels::kRangeParts)});
  range.why_not_faster =
      "its scale covers the whole tensor: one launch finds the range, another quantizes. A "
      "calibrated model needs neither";
  const std::int32_t chunk = b.vector_chunk();
  Step& quantize = launch_elements(
      b, node, Arithmetic::quantize, variant.name, b.kernel(variant.program, "dynamic_quantize"),
      kernels::DynamicQuantize<Argument>{.x = b.in(node.inputs[0]),
                                         .ranges = Builder::read(ranges),
                                         .y = b.out(node.outputs[0]),
                                         .scale_out = b.out(node.outputs[1]),
                                         .zero_point_out = b.out(node.outputs[2])},
      count, chunk);
  if (variant.divides) launch_groups(quantize, SizeExpr{count, kernels::kRangeItems * chunk});
  quantize.why_not_faster = choice.why_not_faster;
}

void lower_rows(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& shape = node.inputs[0]->type.shape;
  const ir::Dim rows = row_count(shape);
  launch_rows(
      b, node, Arithmetic::fp32_to(node.outputs[0]->type.dtype), kernels::quantize_rows_variants(),
      "quantize_rows",
      kernels::QuantizeRows<Argument>{.x = b.in(node.inputs[0]),
                                      .y = b.out(node.outputs[0]),
                                      .y_type = type_code(node.outputs[0]->type.dtype),
                                      .scale = b.out(node.outputs[1]),
                                      .least = static_cast<float>(node.float_attribute("least")),
                                      .rows = SizeExpr{rows},
                                      .hidden = SizeExpr{shape.back()},
                                      .rows_per_item = b.rows_per_item()},
      rows, {shape.back()});
}

}  // namespace

void add_dynamic_quantize(LoweringTable& table) {
  table["DynamicQuantizeLinear"] = lower_dynamic_quantize;
  table[ops::operands::quantize_rows::op] = lower_rows;
}

}  // namespace bertcl::plan
