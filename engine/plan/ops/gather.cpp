// SPDX-License-Identifier: Apache-2.0
// Launch step of Gather: rows of a [outer][axis][inner] view.
#include <algorithm>

#include "ir/input_role.hpp"
#include "kernels/contracts/move.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// True for token ids as the caller gives them.
bool are_token_ids(const ir::Value* v) {
  while (v->producer && v->producer->op == "Cast") v = v->producer->inputs[0];
  return !v->producer && !v->is_constant() && ir::role_of_input(v->name) == ir::InputRole::ids;
}

/// Token ids tell the vocabulary by the table that they choose from.
void note_vocabulary(Plan& plan, const ir::Node& gather, const ir::Dim& axis) {
  if (!gather.inputs[0]->is_constant() || !are_token_ids(gather.inputs[1])) return;
  const std::int64_t rows = axis.constant();
  plan.word_rows = plan.word_rows > 0 ? std::min(plan.word_rows, rows) : rows;
}

}  // namespace

void add_gather(LoweringTable& table) {
  table["Gather"] = [](Builder& b, const ir::Graph&, const ir::Node& node) {
    const ir::Shape& data = node.inputs[0]->type.shape;
    const ir::Type& indices = node.inputs[1]->type;
    std::int64_t axis = node.int_attribute("axis", 0);
    if (axis < 0) axis += static_cast<std::int64_t>(data.size());
    ir::Dim outer(1), inner(1);
    for (std::size_t d = 0; d < data.size(); ++d) {
      if (static_cast<std::int64_t>(d) < axis) outer = outer * data[d];
      if (static_cast<std::int64_t>(d) > axis) inner = inner * data[d];
    }
    note_vocabulary(b.plan(), node, data[static_cast<std::size_t>(axis)]);
    const ir::Dim count = element_count(indices.shape);
    const ir::DType dtype = node.output()->type.dtype;
    b.launch(node, std::string(ir::name_of(dtype)), "rows",
             b.kernel("gather", fmt::format("gather_{}", ir::size_of(dtype))),
             kernels::Gather<Argument>{.data = b.in(node.inputs[0]),
                                       .indices = b.in(node.inputs[1]),
                                       .index_type = type_code(indices.dtype),
                                       .out = b.out(node.output()),
                                       .outer = Size{outer},
                                       .axis = Size{data[static_cast<std::size_t>(axis)]},
                                       .inner = Size{inner},
                                       .index_count = Size{count},
                                       .error = b.error_flag(),
                                       .rows_per_item = b.rows_per_item()},
             {Size{outer * count, b.rows_per_item()}, Size{}, Size{}});
  };
}

}  // namespace bertcl::plan
