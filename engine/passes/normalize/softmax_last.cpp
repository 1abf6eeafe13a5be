// SPDX-License-Identifier: Apache-2.0
// Softmax or LogSoftmax along another axis than the last, for which there is no kernel, becomes one
// along the last.
//
//   Softmax(x [batch, seq, n]) {axis = 1} -> y
//   becomes
//   x -> Transpose {perm = [0, 2, 1]} -> Softmax {axis = 2} -> Transpose {perm = [0, 2, 1]} -> y
#include <numeric>
#include <utility>
#include <vector>

#include "ops/op.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool softmax_last_at(ir::Graph& g, ir::Node& node) {
  if (node.op != "Softmax" && node.op != "LogSoftmax") return false;
  ir::Type type = node.output()->type;
  if (ops::is_last_axis(node, -1, type.shape)) return false;
  const std::size_t axis = ops::axis_of(node, "axis", -1, type.shape.size());
  const auto last = std::ssize(type.shape) - 1;
  std::vector<std::int64_t> perm(type.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[axis], perm.back());  // its own inverse
  std::swap(type.shape[axis], type.shape.back());
  ir::Value* x = g.add("Transpose", {node.inputs[0]}, {{"perm", perm}}, type, &node);
  ir::Value* y = g.add(node.op, {x}, {{"axis", last}}, type, &node);
  x->producer->sources = y->producer->sources = node.sources;
  replace(g, &node, {&node}, "Transpose", {y}, {{"perm", perm}});
  return true;
}

}  // namespace

Pass softmax_last() { return rewriting("softmax_last", softmax_last_at); }

}  // namespace bertcl::passes
