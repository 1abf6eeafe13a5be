// SPDX-License-Identifier: Apache-2.0
// A linear between quantized operands becomes an integer product.
//
//   xq -> DQ --+
//               linear(bias) -> y
//   wq -> DQ --+
//   becomes
//   linear_q(xq, wq, bias, x_scale, x_zero_point, w_scale) -> y f32
//
// wq is i8[K, N] with w_scale f32[N] or one element. Weights in u8 with zero point 128 are moved to
// i8, exactly. Where the file asks for an integer product that cannot be made, the reason stays on
// the node as `float_reason`, for the report.
#include <fmt/format.h>

#include <algorithm>

#include "passes/match.hpp"
#include "passes/passes.hpp"
#include "passes/quant_params.hpp"

namespace bertcl::passes {
namespace {

struct Weight {
  ir::Value* values = nullptr;  // i8[K, N]
  ir::Value* scale = nullptr;   // f32[N] or one element
};

/// The int8 weight behind DequantizeLinear, or the reason why there is none.
std::string int8_weight(ir::Graph& g, const ir::Node& dq, Weight& weight) {
  ir::Value* q = dq.inputs[0];
  if (!q->is_constant()) return "the weight is not constant";
  if (!ir::is_int8(q->type.dtype))
    return fmt::format("the weight is {}, integer products take i8", ir::name_of(q->type.dtype));
  const ir::Dim n = q->type.shape.back();
  if (!dq.inputs[1]->is_constant() || (dq.input(2) && !dq.inputs[2]->is_constant()))
    return "the weight's scale or zero point is not constant";
  const ir::Dim count = element_count(dq.inputs[1]->type.shape);
  const std::int64_t axis = dq.int_attribute("axis", 1);
  if (count != ir::Dim(1) && (count != n || (axis != 1 && axis != -1)))
    return fmt::format(
        "the weight's scale has {} elements along axis {}, an integer product needs "
        "one for each of its {} columns",
        count.str(), axis, n.str());
  std::vector<std::int64_t> zero_points{0};
  if (dq.input(2)) zero_points = dq.inputs[2]->constant->to_ints();
  const std::int64_t expected = q->type.dtype == ir::DType::u8 ? 128 : 0;
  if (std::any_of(zero_points.begin(), zero_points.end(), [&](auto z) { return z != expected; }))
    return fmt::format("the weight's zero point is not {}", expected);
  weight = {q, dq.inputs[1]};
  if (q->type.dtype == ir::DType::u8) {
    const auto bytes = q->constant->as<std::uint8_t>();
    std::vector<std::int8_t> shifted(bytes.size());
    std::transform(bytes.begin(), bytes.end(), shifted.begin(),
                   [](std::uint8_t b) { return static_cast<std::int8_t>(b - 128); });
    weight.values =
        g.add_constant(q->name, ir::Tensor::of(q->constant->shape(), std::move(shifted)));
  }
  return "";
}

bool rewrite(ir::Graph& g, ir::Node& node) {
  if (node.op != "linear" || node.has("float_reason")) return false;
  const ir::Node* w = node.inputs[1]->producer;
  const auto x = per_tensor_dequantized(node.inputs[0]);
  const bool weight_quantized = w && w->op == "DequantizeLinear";
  if (!weight_quantized && !x) return false;
  std::string reason;
  Weight weight;
  if (!weight_quantized)
    reason = "its weight is not quantized";
  else if (!x)
    reason = "its input is not quantized per tensor to u8 or i8";
  else
    reason = int8_weight(g, *w, weight);
  if (!reason.empty()) {
    node.attributes["float_reason"] = reason;
    return true;
  }
  Match m;
  m.nodes = {&node};
  ir::Node* made =
      replace(g, &node, m, "linear_q",
              {x->quantized, weight.values, node.input(2), x->scale, x->zero_point, weight.scale});
  made->sources.insert(made->sources.end(), x->node->sources.begin(), x->node->sources.end());
  return true;
}

}  // namespace

Pass lower_linear_q() {
  return {"lower_linear_q", [](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

}  // namespace bertcl::passes
