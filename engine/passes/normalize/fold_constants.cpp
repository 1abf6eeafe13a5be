// SPDX-License-Identifier: Apache-2.0
// Nodes whose operands are all constant become constants.
//
// DequantizeLinear of an int8 matrix stays: the integer products want the bytes. What no integer op
// has taken is folded at the end, by fold_dequantize; so is Round of a matrix, which may be a part
// of a quantization (find_quantize). Vectors (bias, gamma, beta) fold at once.
#include "ops/interpret.hpp"
#include "passes/match.hpp"
#include "passes/passes.hpp"

namespace bertcl::passes {
namespace {

constexpr std::int64_t max_growth =
    1 << 20;  // elements; an Expand may make more of them than it pays

bool all_constant(const ir::Node& node) {
  for (const ir::Value* in : node.inputs)
    if (in && !in->is_constant()) return false;
  return !node.inputs.empty() && !node.outputs.empty();
}

bool too_large(const ir::Node& node) {
  std::int64_t before = 0;
  for (const ir::Value* in : node.inputs)
    if (in) before += in->constant->size();
  for (const ir::Value* out : node.outputs) {
    const auto sizes = ir::constant_shape(out->type.shape);
    if (!sizes || ir::element_count(*sizes) > std::max(before, max_growth)) return true;
  }
  return false;
}

bool fold(ir::Graph& g, ir::Node& node) {
  if (!all_constant(node) || too_large(node)) return false;
  const std::vector<ir::Tensor> results = ops::evaluate_constant(node);
  if (results.empty()) return false;
  for (std::size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    g.replace_uses(node.outputs[i], g.add_constant(node.outputs[i]->name, results[i]));
  g.erase(&node);
  return true;
}

bool may_be_quantized(const ir::Node& node) {
  if (node.inputs.empty() || !node.inputs[0] || node.inputs[0]->type.shape.size() < 2) return false;
  const ir::DType dtype = node.inputs[0]->type.dtype;
  return (node.op == "DequantizeLinear" && ir::is_int8(dtype)) ||
         (node.op == "Round" && dtype == ir::DType::f32);
}

}  // namespace

Pass fold_constants() {
  return {"fold_constants", [](ir::Graph& g) {
            return rewrite_all(g, [](ir::Graph& graph, ir::Node& node) {
              return !may_be_quantized(node) && fold(graph, node);
            });
          }};
}

Pass fold_dequantize() {
  return {"fold_dequantize", [](ir::Graph& g) { return rewrite_all(g, fold); }};
}

}  // namespace bertcl::passes
