// SPDX-License-Identifier: Apache-2.0
// A MatMul with an operand that was repeated for every sequence of a batch broadcasts it instead.
//
//   c [heads, ..] -> Tile [batch * heads, ..] -> Transpose, Q, DQ, * number -> b
//   MatMul(a [batch * heads, m, k], b) -> y
//   becomes
//   c -> Transpose, Q, DQ, * number -> b [heads, ..]
//   MatMul(a -> Reshape [batch, heads, m, k], b) -> Reshape -> y
//
// DeBERTa multiplies each sequence with the same relative positions. What depends on a constant c
// alone is then folded.
#include <array>
#include <optional>

#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/quant_params.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// What repeats a tensor along its first axis, and the nodes after it in the order of the graph.
struct Repeated {
  ir::Value* once = nullptr;
  ir::Dim times;
  std::vector<ir::Node*> after;
};

bool keeps_first_axis(const ir::Node& node) {
  if (node.op == "Transpose") return node.has("perm") && node.ints_attribute("perm").at(0) == 0;
  if (is_quantization(node)) return is_per_tensor(node);
  const auto factor = scaled(node);
  return factor && factor->x == node.inputs[0];
}

std::optional<Repeated> repeated(ir::Value* v) {
  Repeated found;
  ir::Node* node = v->producer;
  for (; node && node->op != "Tile"; node = node->inputs[0]->producer) {
    if (!keeps_first_axis(*node)) return std::nullopt;
    found.after.insert(found.after.begin(), node);
  }
  if (!node) return std::nullopt;
  found.once = node->inputs[0];
  const ir::Shape &from = found.once->type.shape, &to = node->output()->type.shape;
  if (from.empty() || !std::equal(from.begin() + 1, from.end(), to.begin() + 1, to.end()))
    return std::nullopt;
  const std::optional<ir::Dim> times = ir::Dim::divide(to[0], from[0]);
  if (!times || *times == ir::Dim(1)) return std::nullopt;
  found.times = *times;
  return found;
}

bool untile_matmul_at(ir::Graph& g, ir::Node& matmul) {
  if (matmul.op != "MatMul") return false;
  for (std::size_t side = 0; side < 2; ++side) {
    const ir::Value* tiled = matmul.inputs[side];
    ir::Value* other = matmul.inputs[1 - side];
    if (tiled->type.shape.size() != 3 || other->type.shape.size() != 3 ||
        tiled->type.shape[0] != other->type.shape[0])
      continue;
    const auto found = repeated(matmul.inputs[side]);
    if (!found) continue;
    const ir::Dim heads = found->once->type.shape[0];
    ir::Value* once = found->once;
    for (const ir::Node* node : found->after) {
      std::vector<ir::Value*> inputs = node->inputs;
      inputs[0] = once;
      ir::Type type = node->output()->type;
      type.shape[0] = heads;
      once = add_like(g, *node, std::move(inputs), std::move(type), &matmul);
    }
    /// [batch * heads, ..] as [batch, heads, ..].
    const auto split = [&](ir::Type type) {
      type.shape[0] = heads;
      type.shape.insert(type.shape.begin(), found->times);
      return type;
    };
    std::array<ir::Value*, 2> operands{};
    operands[side] = once;
    operands[1 - side] = g.add("Reshape", {other}, {}, split(other->type), &matmul);
    ir::Value* product = add_like(g, matmul, {operands.begin(), operands.end()},
                                  split(matmul.output()->type), &matmul);
    replace(g, &matmul, {&matmul}, "Reshape", {product});
    return true;
  }
  return false;
}

}  // namespace

Pass untile_matmul() { return rewriting("untile_matmul", untile_matmul_at); }

}  // namespace bertcl::passes
