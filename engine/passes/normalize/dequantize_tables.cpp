// SPDX-License-Identifier: Apache-2.0
// Embedding tables that are stored in 8 bits become float when the model is compiled.
//
//   Gather(table u8, ids) -> DQ(scale, zero_point)      becomes      Gather(table' f32, ids)
#include "ops/interpret.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool dequantize_tables_at(ir::Graph& g, ir::Node& dq) {
  if (dq.op != "DequantizeLinear" || !is_per_tensor(dq)) return false;
  ir::Node* gather = dq.inputs[0]->producer;
  if (!gather || gather->op != "Gather" || !gather->inputs[0]->is_constant()) return false;
  ir::Value* table = gather->inputs[0];
  std::vector<ir::Value*> operands = dq.inputs;
  operands[0] = table;
  const ir::Type real{dq.output()->type.dtype, table->type.shape};
  ir::Node* whole =
      g.add_node("DequantizeLinear", operands, dq.attributes, {{table->name, real}}, gather);
  const auto folded = ops::evaluate_constant(*whole);
  g.erase(whole);
  if (folded.empty()) return false;
  replace(g, &dq, {gather, &dq}, "Gather",
          {g.add_constant(table->name + ".dequantized", folded.front()), gather->inputs[1]},
          gather->attributes);
  return true;
}

}  // namespace

Pass dequantize_tables() { return rewriting("dequantize_tables", dequantize_tables_at); }

}  // namespace bertcl::passes
