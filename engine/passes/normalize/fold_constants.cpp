// SPDX-License-Identifier: Apache-2.0
// Nodes whose operands are all constant become constants.
//
// DequantizeLinear of an int8 matrix stays: the int8 GEMMs want the bytes. What no integer op
// has taken is folded at the end, by fold_dequantize; so is Round of a matrix, which may be a part
// of a quantization (find_quantize). Vectors (bias, gamma, beta) fold at once.
#include "passes/evaluate_constants.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool may_be_quantized(const ir::Node& node) {
  if (node.inputs.empty() || !node.inputs[0] || node.inputs[0]->type.shape.size() < 2) return false;
  const ir::DType dtype = node.inputs[0]->type.dtype;
  return (node.op == "DequantizeLinear" && ir::is_int8(dtype)) ||
         (node.op == "Round" && dtype == ir::DType::f32);
}

}  // namespace

Pass fold_constants(const ir::Limits& limits) {
  return {"fold_constants", [limits](ir::Graph& g) {
            return evaluate_constants(g, limits,
                                      [](const ir::Node& n) { return !may_be_quantized(n); });
          }};
}

}  // namespace bertcl::passes
