// SPDX-License-Identifier: Apache-2.0
// A matrix transpose that an exporter wrote on three axes takes its leading axes back.
//
//   x [batch, heads, seq, size] -> Reshape [batch*heads, seq, size] -> Transpose(0,2,1)
//     -> Reshape [batch, heads, size, seq]
//   becomes
//   x -> Transpose(0,1,3,2)
//
// torch's exporter of today transposes the keys of scaled_dot_product_attention so.
#include <numeric>

#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

ir::Node* producer_of(const ir::Node& node, std::string_view op) {
  ir::Node* before = node.inputs[0]->producer;
  return before && before->op == op && before->inputs.size() == 1 ? before : nullptr;
}

bool unmerge_transpose_at(ir::Graph& g, ir::Node& split) {
  if (split.op != "Reshape" || split.inputs.size() != 1) return false;
  ir::Node* transpose = producer_of(split, "Transpose");
  if (!transpose || transpose->ints_attribute("perm") != std::vector<std::int64_t>{0, 2, 1})
    return false;
  ir::Node* merge = producer_of(*transpose, "Reshape");
  if (!merge) return false;
  const ir::Shape& in = merge->inputs[0]->type.shape;
  const ir::Shape& merged = merge->output()->type.shape;
  ir::Shape swapped = in;
  if (in.size() < 3) return false;
  std::swap(swapped[in.size() - 1], swapped[in.size() - 2]);
  if (split.output()->type.shape != swapped || merged[1] != in[in.size() - 2] ||
      merged[2] != in.back())
    return false;
  std::vector<std::int64_t> perm(in.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  Match m;
  m.nodes = {merge, transpose, &split};
  replace(g, &split, m, "Transpose", {merge->inputs[0]}, {{"perm", perm}});
  return true;
}

}  // namespace

Pass unmerge_transpose() {
  return {"unmerge_transpose", [](ir::Graph& g) { return rewrite_all(g, unmerge_transpose_at); }};
}

}  // namespace bertcl::passes
