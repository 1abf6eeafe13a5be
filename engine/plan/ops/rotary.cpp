// SPDX-License-Identifier: Apache-2.0
// The launch of rotary.
#include "kernels/contracts/rows.hpp"
#include "kernels/variants.hpp"
#include "ops/operands.hpp"
#include "ops/symbols.hpp"
#include "plan/lowering_table.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

void lower_rotary(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::rotary;
  const ir::Value* seq_offsets = node.input(o::seq_offsets);
  if (!seq_offsets)
    fail(node, "rotary positions need packed tokens; keep the pass pack_tokens enabled");
  const auto choice = choose(b, node, kernels::rotary_variants());
  const kernels::KernelVariant& variant = *choice.variant;
  const std::int32_t rows = variant.divides ? 1 : b.rows_per_item();
  kernels::Rotary<Argument> arguments;
  arguments.x = b.in(node.inputs[o::x]);
  arguments.cosines = b.in(node.inputs[o::cos]);
  arguments.sines = b.in(node.inputs[o::sin]);
  const ir::DType type = node.output()->type.dtype;
  arguments.out = b.out(node.output());
  arguments.out_type = type_code(type);
  const OutColumns out = out_columns(b, node.input(o::out_scale), node.input(o::out_zero_point),
                                     node.output()->type.shape.back().constant());
  arguments.out_inv_scale = out.inv_scale;
  arguments.out_zero_point = out.zero_point;
  arguments.seq_offsets = b.in(seq_offsets);
  arguments.heads = static_cast<std::int32_t>(node.int_attribute("heads"));
  const ir::Shape& table = node.inputs[o::cos]->type.shape;
  arguments.head_size = static_cast<std::int32_t>(table.back().constant());
  const bool is_of_sequences = table.size() > 2 && table.front() != ir::Dim(1);
  arguments.table_rows = SizeExpr{is_of_sequences ? table[table.size() - 2] : ir::Dim(0)};
  arguments.rows_per_item = rows;
  const std::int64_t quads = (table.back().constant() + 7) / 8;
  const ir::Dim longest = ops::symbols::dim(ops::symbols::longest);
  const SizeExpr items = variant.divides
                             ? SizeExpr{longest * ir::Dim(node.int_attribute("heads") * quads)}
                             : SizeExpr{longest, rows};
  Step& step =
      b.launch(node, Arithmetic::fp32_to(type), variant.name, b.kernel(variant.program, "rotary"),
               arguments, {items, SizeExpr{}, SizeExpr{ops::symbols::dim(ops::symbols::batch)}});
  step.why_not_faster = choice.why_not_faster;
}

}  // namespace

void add_rotary(LoweringTable& table) { table[ops::operands::rotary::op] = lower_rotary; }

}  // namespace bertcl::plan
