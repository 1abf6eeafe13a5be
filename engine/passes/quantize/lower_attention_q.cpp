// SPDX-License-Identifier: Apache-2.0
// Attention whose operands and probabilities are quantized becomes integer attention.
//
//   qq -> DQ, kq -> DQ, vq -> DQ -> attention(.., p_scale, p_zero_point) -> y
//   becomes
//   attention_q(qq, kq, vq, attention_mask, p_scale, q_scale, q_zero_point, k_scale, k_zero_point,
//               v_scale, v_zero_point) -> y f32
//
// find_attention has made sure that all of them are quantized where the probabilities are.
#include "ops/operands.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool lower_attention_q_at(ir::Graph& g, ir::Node& node) {
  if (node.op != attention::op || !node.input(attention::p_scale)) return false;
  std::vector<ir::Value*> inputs{nullptr, nullptr, nullptr, node.input(attention::mask),
                                 node.inputs[attention::p_scale]};
  std::vector<ir::Node*> covered = {&node};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto d = per_tensor_dequantized(node.inputs[i]);
    if (!d) return false;
    inputs[i] = d->quantized;
    inputs.insert(inputs.end(), {d->scale, d->zero_point});
    covered.push_back(d->node);
  }
  if (ir::Value* bias = node.input(attention::bias)) set_operand(inputs, attention_q::bias, bias);
  replace(g, &node, covered, attention_q::op, inputs, node.attributes);
  return true;
}

}  // namespace

Pass lower_attention_q() { return rewriting("lower_attention_q", lower_attention_q_at); }

}  // namespace bertcl::passes
