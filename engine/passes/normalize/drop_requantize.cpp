// SPDX-License-Identifier: Apache-2.0
// A Q/DQ pair whose result is quantized again in the same way, after it was moved at most,
// disappears.
//
//   x -> Q(s) -> DQ(s) -> Reshape -> Transpose -> Q(s)
//   becomes
//   x -> Reshape -> Transpose -> Q(s)
//
// ONNX Runtime's QDQPropagationTransformer writes such pairs on both sides of each operator that
// moves elements. Quantizing twice with one scale changes nothing, since (q * s) / s rounds to q.
#include <limits>

#include "ops/op.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// The DequantizeLinear whose elements reach `v`, which are only moved and read by nothing else.
ir::Node* dequantized_before(const ir::Graph& g, const ir::Value* v) {
  for (; v->producer && g.used_once(v); v = v->producer->inputs[0]) {
    if (v->producer->op == "DequantizeLinear") return v->producer;
    // Another result of a Split would lose its rounding.
    if (v->producer->outputs.size() != 1 || !ops::traits(*v->producer).moves_elements)
      return nullptr;
  }
  return nullptr;
}

bool drop_requantize_at(ir::Graph& g, ir::Node& quantize) {
  if (quantize.op != "QuantizeLinear" || !is_per_tensor(quantize)) return false;
  // The product with a scale that is not a normal number is rounded coarsely, or to zero.
  if (!(*scalar_value(quantize.inputs[1]) >= std::numeric_limits<float>::min())) return false;
  ir::Node* dequantize = dequantized_before(g, quantize.inputs[0]);
  if (!dequantize) return false;
  ir::Node* first = dequantize->inputs[0]->producer;
  if (!first || first->op != "QuantizeLinear" || !same_parameters(*first, *dequantize) ||
      !same_parameters(*first, quantize) ||
      first->output()->type.dtype != quantize.output()->type.dtype ||
      first->inputs[0]->type != dequantize->output()->type)
    return false;
  quantize.sources = sources_of({&quantize, first, dequantize});
  g.replace_uses(dequantize->output(), first->inputs[0]);
  return true;
}

}  // namespace

Pass drop_requantize() { return rewriting("drop_requantize", drop_requantize_at); }

}  // namespace bertcl::passes
