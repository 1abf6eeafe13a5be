// SPDX-License-Identifier: Apache-2.0
// Leading axes that an exporter merged for a batched MatMul stay apart: the Reshape that merges
// them moves down, until it meets the one that takes it back.
//
//   x [batch, heads, seq, size] -> Reshape [batch*heads, seq, size] -> Transpose(0,2,1)
//     -> Reshape [batch, heads, size, seq]
//   becomes
//   x -> Transpose(0,1,3,2)
//
// Between the two there may also be MatMuls of two merged operands, sums of such, factors,
// quantization by one scale, Softmax, and GatherElements along the last axis. torch's exporter of
// today transposes the keys of scaled_dot_product_attention so; DeBERTa makes its scores so. Key
// heads that several query heads share have an axis more, and are merged before they are
// transposed:
//
//   x [batch, heads, times, seq, size] -> Transpose(0,1,2,4,3)
//     -> Reshape [batch, heads*times, size, seq]
//   becomes
//   x -> Reshape [batch, heads*times, seq, size] -> Transpose(0,1,3,2)
#include <algorithm>
#include <numeric>

#include "ops/op.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// x [.., rows, columns] of v [product, rows, columns]; null if v is not made so.
ir::Value* unmerged(const ir::Value* v) {
  const ir::Node* reshape = v->producer;
  if (!reshape || reshape->op != "Reshape" || reshape->inputs.size() != 1) return nullptr;
  ir::Value* x = reshape->inputs[0];
  const ir::Shape &from = x->type.shape, &to = v->type.shape;
  if (to.size() != 3 || from.size() < 4) return nullptr;
  return from[from.size() - 2] == to[1] && from.back() == to[2] ? x : nullptr;
}

bool same_leading_axes(const ir::Value* a, const ir::Value* b) {
  const ir::Shape &x = a->type.shape, &y = b->type.shape;
  return x.size() == y.size() && std::equal(x.begin(), x.end() - 2, y.begin());
}

/// Elements of the result come from the same place of operand 0 alone.
bool follows_operand_0(const ir::Node& node) {
  if (is_quantization(node)) return is_per_tensor(node);
  const auto factor = scaled(node);
  return factor && factor->x == node.inputs[0];
}

/// Indices [1, rows, columns], repeated along the whole first axis of `merged`, as [1, .., rows,
/// columns] repeated to the shape of x's rows; null if they are not repeated so.
ir::Value* repeated_indices(ir::Graph& g, const ir::Value* indices, const ir::Value* merged,
                            const ir::Value* x, ir::Node* before) {
  const ir::Node* expand = indices->producer;
  if (!expand || expand->op != "Expand") return nullptr;
  ir::Value* once = expand->inputs[0];
  const ir::Shape &from = once->type.shape, &to = indices->type.shape;
  if (to[0] != merged->type.shape[0] || from.size() > 3 ||
      (from.size() == 3 && from[0] != ir::Dim(1)))
    return nullptr;
  ir::Shape lifted(x->type.shape.size() - from.size(), ir::Dim(1));
  lifted.insert(lifted.end(), from.begin(), from.end());
  ir::Shape repeated(x->type.shape.begin(), x->type.shape.end() - 2);
  repeated.insert(repeated.end(), to.end() - 2, to.end());
  const ir::DType dtype = indices->type.dtype;
  once = g.add("Reshape", {once}, {}, {dtype, lifted}, before);
  return g.add("Expand", {once}, {}, {dtype, repeated}, before);
}

/// The operands and attributes of a node without the merging; no operands where it must stay.
struct Apart {
  std::vector<ir::Value*> inputs;
  ir::Attributes attributes;
};

Apart apart(ir::Graph& g, ir::Node& node) {
  ir::Value* x = unmerged(node.inputs[0]);
  if (!x) return {};
  Apart result{node.inputs, node.attributes};
  result.inputs[0] = x;
  if (follows_operand_0(node)) return result;
  if (node.op == "Transpose") {
    if (node.ints_attribute("perm") != std::vector<std::int64_t>{0, 2, 1}) return {};
    std::vector<std::int64_t> perm(x->type.shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    result.attributes["perm"] = perm;
    return result;
  }
  if (node.op == "Softmax") {
    if (!ops::is_last_axis(node, -1, node.output()->type.shape)) return {};
    result.attributes["axis"] = -1;
    return result;
  }
  if (node.op == "GatherElements") {
    if (!ops::is_last_axis(node, 0, node.output()->type.shape)) return {};
    result.inputs[1] = repeated_indices(g, node.inputs[1], node.inputs[0], x, &node);
    result.attributes["axis"] = -1;
    return result.inputs[1] ? result : Apart{};
  }
  if (node.op != "MatMul" && node.op != "Add") return {};
  ir::Value* y = unmerged(node.inputs[1]);
  if (!y || !same_leading_axes(x, y)) return {};
  if (node.op == "Add" && x->type.shape != y->type.shape) return {};
  result.inputs[1] = y;
  return result;
}

bool merge_first(ir::Graph& g, ir::Node& reshape) {
  ir::Value* merged = reshape.inputs[0];
  if (ir::Value* x = unmerged(merged)) merged = x;
  ir::Node* transpose = merged->producer;
  if (!transpose || transpose->op != "Transpose" || reshape.inputs.size() != 1 ||
      transpose->ints_attribute("perm") != std::vector<std::int64_t>{0, 1, 2, 4, 3})
    return false;
  const ir::Type& from = transpose->inputs[0]->type;
  ir::Shape shape{from.shape[0], from.shape[1] * from.shape[2], from.shape[3], from.shape[4]};
  if (reshape.output()->type.shape != ir::Shape{shape[0], shape[1], shape[3], shape[2]})
    return false;
  ir::Value* made =
      g.add("Reshape", {transpose->inputs[0]}, {}, {from.dtype, std::move(shape)}, &reshape);
  made->producer->sources = reshape.sources;
  replace(g, &reshape, {transpose}, "Transpose", {made},
          {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  return true;
}

bool unmerge_axes_at(ir::Graph& g, ir::Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1 || !node.inputs[0]) return false;
  ir::Value* y = node.output();
  if (node.op == "Reshape") {
    ir::Value* x = node.inputs.size() == 1 ? unmerged(node.inputs[0]) : nullptr;
    if (!x || x->type.shape != y->type.shape || g.is_output(y)) return merge_first(g, node);
    g.replace_uses(y, x);
    return true;
  }
  if (y->type.shape.size() != 3) return false;
  const Apart operands = apart(g, node);
  if (operands.inputs.empty()) return false;
  const ir::Shape& x = operands.inputs[0]->type.shape;
  ir::Shape shape(x.begin(), x.end() - 2);
  shape.insert(shape.end(), y->type.shape.end() - 2, y->type.shape.end());
  ir::Value* made =
      g.add(node.op, operands.inputs, operands.attributes, {y->type.dtype, shape}, &node);
  made->producer->sources = node.sources;
  replace(g, &node, {&node}, "Reshape", {made});
  return true;
}

}  // namespace

Pass unmerge_axes() { return rewriting("unmerge_axes", unmerge_axes_at); }

}  // namespace bertcl::passes
