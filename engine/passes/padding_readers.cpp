// SPDX-License-Identifier: Apache-2.0
// Follows rows of padding through the graph.
#include "passes/padding_readers.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/op.hpp"

namespace bertcl::passes {
namespace {

/// True if elements of the result are made of several elements of operand 0 along an axis of
/// tokens: any whose size is a multiple of `seq`, or where the operand has rows as attention has
/// them (`is_rows`, [batch, seq, ...] with no other axis of that size), the second.
bool mixes_tokens(const ir::Node& node, const ir::Dim& seq, bool is_rows) {
  const auto mixed_axes = ops::traits(node).mixed_axes;
  if (!mixed_axes) return false;
  const ir::Shape& shape = node.inputs[0]->type.shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  // A sequence of fixed length may divide the width of a row: [batch, 128, 384].
  const bool second_alone = is_rows && std::count(shape.begin(), shape.end(), seq) == 1;
  const auto of_tokens = [&](std::int64_t axis) {
    const auto i = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    return second_alone ? i == 1 : ir::Dim::divide(shape.at(i), seq).has_value();
  };
  const std::vector<std::int64_t> axes = mixed_axes(node);
  return (rank > 1 && axes.size() == shape.size()) ||
         std::any_of(axes.begin(), axes.end(), of_tokens);
}

/// True if a result of the operator may be the same for all values of a row of padding, by what it
/// reads of the mask. Others, as Concat, put values of the mask beside those of the row.
bool can_mask(const ir::Node& node) {
  static const std::set<std::string_view> ops = {"Add", "Sub", "Mul",   "Div",    "Min", "Max",
                                                 "And", "Or",  "Where", "MatMul", "pool"};
  return ops.contains(node.op);
}

}  // namespace

const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask, const ir::Dim& seq,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention) {
  // A value that is masked but not of the mask alone, as embeddings that are zero for padding, does
  // not mask what it is added to.
  std::set<const ir::Value*> padded = changed, rows = changed, from_mask, from_sizes, masked;
  if (mask) from_mask.insert(mask);
  for (const auto& n : graph.nodes()) {
    if (n->op == "pack_inputs" || n->op == "pack") continue;
    const auto reads = [&](const std::set<const ir::Value*>& values) {
      return std::any_of(n->inputs.begin(), n->inputs.end(),
                         [&](const ir::Value* v) { return v && values.contains(v); });
    };
    const auto reads_only = [&](const std::set<const ir::Value*>& values) {
      return std::all_of(n->inputs.begin(), n->inputs.end(), [&](const ir::Value* v) {
        return !v || v->is_constant() || from_sizes.contains(v) || values.contains(v);
      });
    };
    const bool attends = attention.contains(n.get()), reads_padded = reads(padded);
    const bool multiplies = n->op == "Mul" || n->op == "MatMul";
    const bool masks = !attends && can_mask(*n) &&
                       (reads(from_mask) || (reads(masked) && (multiplies || !reads_padded)));
    if (reads_padded && !masks && !attends && mixes_tokens(*n, seq, rows.contains(n->inputs[0])))
      return n.get();
    for (const ir::Value* out : n->outputs) {
      if (reads_padded)
        (masks ? masked : padded).insert(out);
      else if (reads_only({}))
        from_sizes.insert(out);
      else if (reads_only(from_mask))
        from_mask.insert(out);
      else if (reads(masked))
        masked.insert(out);
      if (std::any_of(n->inputs.begin(), n->inputs.end(), [&](const ir::Value* in) {
            return rows.contains(in) && in->type.shape == out->type.shape;
          }))
        rows.insert(out);
    }
  }
  return nullptr;
}

}  // namespace bertcl::passes
