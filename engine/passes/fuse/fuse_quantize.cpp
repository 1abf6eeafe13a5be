// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear moves into the op that makes its operand, which then writes bytes directly.
//
//   linear_q -> Q -> yq
//   becomes
//   linear_q(.., out_scale, out_zero_point) -> yq
//
//   add_norm -> y;  y -> Q -> yq
//   becomes
//   add_norm(.., out_scale, out_zero_point) -> y, yq
//
// A linear whose float result is needed elsewhere too stays as it is. The norms can give both, and
// up to two quantized results: the residual goes on, in float or with scales of its own, while the
// next linear reads bytes. A scale for each column is loaded like a bias; attention takes one
// scale.
#include "ops/norm.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

constexpr std::size_t kMaxQuantizedResults = 2;  // of a norm

bool fuse_quantize_at(ir::Graph& g, ir::Node& q) {
  if (q.op != "QuantizeLinear" || !is_per_tensor_or_column(q) || !has_inverse(*q.inputs[1]) ||
      !ir::is_int8(q.output()->type.dtype))
    return false;
  ir::Node* maker = q.inputs[0]->producer;
  if (!maker || maker->output() != q.inputs[0] || maker->output()->type.dtype != ir::DType::f32)
    return false;
  std::optional<std::size_t> position = ops::traits(*maker).out_scale;
  if (!position || (maker->op == attention_q::op && !is_per_tensor(q))) return false;
  const bool is_norm = ops::traits(*maker).is_norm;
  if (!is_norm && (maker->input(*position) || !g.used_once(maker->output()))) return false;
  if (is_norm) {
    const std::size_t results = maker->outputs.size() - ops::first_quantized_result(*maker);
    if (results == kMaxQuantizedResults) return false;
    *position += 2 * results;
  }

  g.set_input(maker, *position, q.inputs[1]);
  g.set_input(maker, *position + 1, q.input(2));
  const ir::Type& type = q.output()->type;
  ir::Value* result = maker->output();
  if (is_norm)
    result = g.add_result(maker, q.output()->name, type);
  else
    result->type = type;
  maker->sources = sources_of({maker, &q});
  replace_uses_and_name(g, q.output(), result);
  g.erase(&q);
  return true;
}

}  // namespace

Pass fuse_quantize() { return rewriting("fuse_quantize", fuse_quantize_at); }

}  // namespace bertcl::passes
