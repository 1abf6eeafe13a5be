// SPDX-License-Identifier: Apache-2.0
// A linear between quantized operands becomes an int8 GEMM.
//
//   xq -> DQ --+
//               linear(bias) -> y
//   wq -> DQ --+
//   becomes
//   linear_q(xq, wq, bias, x_scale, x_zero_point, w_scale, _, _, w_zero_point) -> y f32
//
// wq is i8[K, N] with w_scale f32[N] or one element; w_zero_point is absent where all are 0.
// Weights in u8 are moved to i8, exactly. Where the file asks for an int8 GEMM that cannot be
// made, the reason stays on the node as `float_reason`, for the report.
#include <fmt/format.h>

#include "ops/operands.hpp"
#include "passes/int8_weight.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// Why the weight after DequantizeLinear cannot be that of an int8 GEMM; "" if it can.
std::string why_no_weight(const ir::Node& dq) {
  const ir::Value* q = dq.inputs[0];
  if (!q->is_constant()) return "the weight is not constant";
  if (!ir::is_int8(q->type.dtype))
    return fmt::format("the weight is {}, int8 GEMMs take i8 or u8", ir::name_of(q->type.dtype));
  if (element_count(q->type.shape) == ir::Dim(0)) return "the weight has no elements";
  const ir::Dim n = q->type.shape.back();
  if (!dq.inputs[1]->is_constant() || (dq.input(2) && !dq.inputs[2]->is_constant()))
    return "the weight's scale or zero point is not constant";
  const ir::Dim count = element_count(dq.inputs[1]->type.shape);
  const std::int64_t axis = dq.int_attribute("axis", 1);
  if (count != ir::Dim(1) && (count != n || (axis != 1 && axis != -1)))
    return fmt::format(
        "the weight's scale has {} elements along axis {}, an int8 GEMM needs one per column ({})",
        count.str(), axis, n.str());
  return "";
}

bool lower_linear_q_at(ir::Graph& g, ir::Node& node) {
  if (node.op != linear::op || node.has("float_reason")) return false;
  const ir::Node* w = node.inputs[1]->producer;
  const auto x = per_tensor_dequantized(node.inputs[0]);
  const bool weight_quantized = w && w->op == "DequantizeLinear";
  if (!weight_quantized && !x) return false;
  std::string reason;
  if (!weight_quantized)
    reason = "its weight is not quantized";
  else if (!x)
    reason = "its input is not quantized per tensor to u8 or i8";
  else
    reason = why_no_weight(*w);
  if (!reason.empty()) {
    node.attributes["float_reason"] = reason;
    return true;
  }
  const Int8Weight weight = to_int8(g, w->inputs[0], w->input(2));
  if (const auto k = node.inputs[1]->type.shape[0].constant(),
      most = max_exact_products(weight.zero_point);
      k > most) {
    node.attributes["float_reason"] =
        fmt::format("K = {} can overflow the int32 accumulator (at most {})", k, most);
    return true;
  }
  std::vector<ir::Value*> operands{x->quantized, weight.values, node.input(2),
                                   x->scale,     x->zero_point, w->inputs[1]};
  if (weight.zero_point) set_operand(operands, linear_q::w_zero_point, weight.zero_point);
  ir::Node* made = replace(g, &node, {&node}, linear_q::op, operands);
  made->sources = sources_of({made, x->node});
  return true;
}

}  // namespace

Pass lower_linear_q() { return rewriting("lower_linear_q", lower_linear_q_at); }

}  // namespace bertcl::passes
