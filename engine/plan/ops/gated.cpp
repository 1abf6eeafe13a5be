// SPDX-License-Identifier: Apache-2.0
// The launch of gated.
#include "kernels/contracts/elementwise.hpp"
#include "kernels/types.hpp"
#include "ops/operands.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_gated(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::gated;
  const ir::Type& type = node.output()->type;
  const ir::Dim count = element_count(type.shape);
  kernels::Gated<Argument> arguments;
  arguments.gate = b.in(node.inputs[o::gate]);
  arguments.up = b.in(node.inputs[o::up]);
  arguments.activation = node.has("activation") ? kernels::silu_code : 0;
  arguments.out = b.out(node.output());
  arguments.out_type = type_code(type.dtype);
  if (const ir::Value* scale = node.input(o::out_scale)) {
    const std::int64_t columns = type.shape.back().constant();
    const auto vector = [&](std::vector<float> values) {
      return b.constant(ir::Tensor::of({columns}, std::move(values)));
    };
    std::vector<float> inverse = per_column(scale, columns, 1);
    for (float& s : inverse) s = 1.0f / s;
    arguments.out_inv_scale = vector(std::move(inverse));
    arguments.out_zero_point = vector(per_column(node.input(o::out_zero_point), columns, 0));
  }
  arguments.count = Size{count};
  arguments.columns = Size{type.shape.back()};
  arguments.chunk = b.vector_chunk();
  b.launch(node, ir::is_int8(type.dtype) ? "fp32 > int8" : "fp32", "elements",
           b.kernel("gated", "gated"), arguments, {Size{count, b.vector_chunk()}, Size{}, Size{}});
}

}  // namespace

void add_gated(LoweringTable& table) { table["gated"] = lower_gated; }

}  // namespace bertcl::plan
