// SPDX-License-Identifier: Apache-2.0
// A MatMul of one-hot rows with a table is a look-up in the table.
//
//   ids -> OneHot(depth, [0, 1]) -> MatMul(table [depth, hidden]) -> y
//   becomes
//   Gather(table, ids) -> y
//
// TensorFlow's BERT embeds its segments so. An id outside the table gives zeros in the MatMul; a
// model whose ids are within its table, as they must be, gives the same.
#include "ops/op.hpp"
#include "ops/type_constraints.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool gather_one_hot_at(ir::Graph& g, ir::Node& matmul) {
  if (matmul.op != "MatMul") return false;
  ir::Node* one_hot = matmul.inputs[0]->producer;
  const ir::Shape& table = matmul.inputs[1]->type.shape;
  if (!one_hot || one_hot->op != "OneHot" || table.size() != 2) return false;
  if (!ops::types::indices.contains(one_hot->inputs[0]->type.dtype)) return false;
  const ir::Value* values = one_hot->inputs[2];
  if (!ops::is_last_axis(*one_hot, -1, one_hot->output()->type.shape) || !values->is_constant() ||
      values->constant->to_doubles() != std::vector<double>{0, 1})
    return false;
  replace(g, &matmul, {one_hot, &matmul}, "Gather", {matmul.inputs[1], one_hot->inputs[0]},
          {{"axis", 0}});
  return true;
}

}  // namespace

Pass gather_one_hot() { return rewriting("gather_one_hot", gather_one_hot_at); }

}  // namespace bertcl::passes
