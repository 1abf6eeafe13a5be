// SPDX-License-Identifier: Apache-2.0
// The launch of gated.
#include "kernels/contracts/elementwise.hpp"
#include "kernels/types.hpp"
#include "ops/operands.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_gated(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::gated;
  const ir::Type& type = node.output()->type;
  kernels::Gated<Argument> arguments;
  arguments.gate = b.in(node.inputs[o::gate]);
  arguments.up = b.in(node.inputs[o::up]);
  arguments.activation = node.has("activation") ? kernels::kSiluCode : 0;
  arguments.out = b.out(node.output());
  arguments.out_type = type_code(type.dtype);
  const OutColumns out = out_columns(b, node.input(o::out_scale), node.input(o::out_zero_point),
                                     type.shape.back().constant());
  arguments.out_inv_scale = out.inv_scale;
  arguments.out_zero_point = out.zero_point;
  arguments.columns = SizeExpr{type.shape.back()};
  launch_elements(b, node, Arithmetic::fp32_to(type.dtype), "elements", b.kernel("gated", "gated"),
                  arguments, element_count(type.shape), b.vector_chunk());
}

}  // namespace

void add_gated(LoweringTable& table) { table[ops::operands::gated::op] = lower_gated; }

}  // namespace bertcl::plan
