// SPDX-License-Identifier: Apache-2.0
// Follows the tokens of the inputs through the graph.
#include "passes/token_values.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/token_axes.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

TokenAxes followed(const ir::Node& node, const ir::Value& result,
                   const std::map<const ir::Value*, TokenAxes>& known) {
  const auto is_known = [&](const ir::Value* operand) { return known.contains(operand); };
  const bool of_rows = node.op == embed_norm::op || ops::traits(node).is_attention;
  if (node.op == unpack::op || (of_rows && is_known(node.inputs[0])))
    return axis_of_tokens(result.type.shape);
  TokenAxes axes;
  if (node.op == pack::op || node.op == pack_inputs::op) return axes;  // followed from unpack on
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto operand = known.find(node.inputs[i]);
    if (operand == known.end()) continue;
    const auto is_chosen = [](const ir::Value*) { return false; };
    for (const TokenAxis& t : follow_tokens(node, i, result, operand->second, is_chosen).result)
      if (std::ranges::none_of(axes, [&](const TokenAxis& o) { return o.is_same_place(t); }))
        axes.push_back(t);
  }
  return axes;
}

/// Of a value with these token axes.
bool is_of_tokens(const ir::Shape& shape, const TokenAxes& axes) {
  if (shape.size() < 2) return false;
  if (shape[1] == ir::Dim(1)) return shape.size() > 2;
  const TokenAxis second = axis_of_tokens(shape).front();
  return std::ranges::any_of(
      axes, [&](const TokenAxis& t) { return t.order.empty() && t.is_same_place(second); });
}

}  // namespace

std::set<const ir::Value*> values_of_tokens(const ir::Graph& graph) {
  std::map<const ir::Value*, TokenAxes> known;
  std::set<const ir::Value*> found;
  const auto add = [&](const ir::Value* value, TokenAxes axes) {
    if (is_of_tokens(value->type.shape, axes)) found.insert(value);
    if (!axes.empty()) known.emplace(value, std::move(axes));
  };
  for (const ir::Value* input : graph.inputs())
    if (input->type.shape.size() == 2) add(input, axis_of_tokens(input->type.shape));
  for (const auto& node : graph.nodes())
    for (const ir::Value* result : node->outputs) add(result, followed(*node, *result, known));
  return found;
}

}  // namespace bertcl::passes
