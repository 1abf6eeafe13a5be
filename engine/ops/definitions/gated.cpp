// SPDX-License-Identifier: Apache-2.0
// gated: the middle of a gated feed-forward part (Shazeer, 2020).
#include <cmath>

#include "ops/fused.hpp"
#include "ops/operands.hpp"

namespace bertcl::ops {
namespace {

std::vector<ir::Type> infer_gated(InferContext& context) {
  namespace o = operands::gated;
  const ir::Shape& shape = context.shape(o::gate);
  if (shape.empty() || context.shape(o::up) != shape)
    context.fail("gate {} and up {} are not rows of the same size", ir::str(context.type(o::gate)),
                 ir::str(context.type(o::up)));
  if (context.node.has("activation") && context.node.string_attribute("activation") != "silu")
    context.fail("unknown activation {}", context.node.string_attribute("activation"));
  check_vector(context, o::out_scale, shape.back(), /*or_one_element=*/true);
  check_vector(context, o::out_zero_point, shape.back(), /*or_one_element=*/true);
  return {{type_of_result(context, 0, o::out_scale), shape}};
}

std::vector<ir::Tensor> evaluate_gated(const EvaluateContext& context) {
  namespace o = operands::gated;
  std::vector<double> y = context.in(o::gate).to_doubles();
  const std::vector<double> up = context.in(o::up).to_doubles();
  const bool activated = context.node.has("activation");
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = (activated ? y[i] / (1 + std::exp(-y[i])) : y[i]) * up[i];
  return {result_of(context, 0, context.in(o::gate).shape(), y, o::out_scale, o::out_zero_point)};
}

}  // namespace

std::vector<OpDef> gated_ops() {
  return {own_op(operands::gated::op, {{types::real}, {types::real}, {types::real}, {types::bytes}},
                 operands::gated::names, infer_gated, evaluate_gated,
                 {.row_wise = true, .out_scale = operands::gated::out_scale})};
}

}  // namespace bertcl::ops
