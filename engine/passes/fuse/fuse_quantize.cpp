// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear moves into the op that makes its operand, which then writes bytes at once.
//
//   linear_q -> Q -> yq                    becomes  linear_q(.., out_scale, out_zero_point) -> yq
//   add_norm -> y, y -> Q -> yq            becomes  add_norm(.., out_scale, out_zero_point) -> y,
//   yq
//
// A product whose float result is needed elsewhere too stays as it is. The norms can give both: the
// residual goes on in float while the next product reads bytes.
#include <algorithm>

#include "passes/match.hpp"
#include "passes/operands.hpp"
#include "passes/passes.hpp"
#include "passes/quant_params.hpp"

namespace bertcl::passes {
namespace {

/// Position of out_scale among the operands of ops that can quantize their result.
std::optional<std::size_t> out_scale_operand(std::string_view op) {
  if (op == "linear_q") return linear_q::out_scale;
  if (op == "attention_q") return attention_q::out_scale;
  if (op == "add_norm") return add_norm::out_scale;
  if (op == "embed_norm") return embed_norm::out_scale;
  return std::nullopt;
}

bool rewrite(ir::Graph& g, ir::Node& q) {
  if (q.op != "QuantizeLinear" || !is_per_tensor(q) || !ir::is_int8(q.output()->type.dtype))
    return false;
  ir::Node* maker = q.inputs[0]->producer;
  if (!maker || maker->output() != q.inputs[0] || maker->output()->type.dtype != ir::DType::f32)
    return false;
  const auto position = out_scale_operand(maker->op);
  if (!position || maker->input(*position)) return false;
  const bool gives_both = maker->op == "add_norm" || maker->op == "embed_norm";
  if (!gives_both && !g.used_once(maker->output())) return false;

  std::vector<ir::Value*> operands = maker->inputs;
  operands.resize(std::max(operands.size(), *position + 2), nullptr);
  operands[*position] = q.inputs[1];
  operands[*position + 1] = q.input(2);
  std::vector<ir::Graph::Result> results;
  if (gives_both) results.push_back({maker->output()->name, maker->output()->type});
  results.push_back({q.output()->name, q.output()->type});
  ir::Node* made = g.add_node(maker->op, operands, maker->attributes, results, maker);
  Match m;
  m.nodes = {maker, &q};
  made->sources = m.sources();
  g.replace_uses(q.output(), made->outputs.back());
  g.swap_names(q.output(), made->outputs.back());
  if (gives_both) {
    g.replace_uses(maker->output(), made->output());
    g.swap_names(maker->output(), made->output());
  }
  g.erase(&q);
  g.erase(maker);
  return true;
}

}  // namespace

Pass fuse_quantize() {
  return {"fuse_quantize", [](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

}  // namespace bertcl::passes
