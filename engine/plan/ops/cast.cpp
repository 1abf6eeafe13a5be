// SPDX-License-Identifier: Apache-2.0
// Launch step of Cast.
#include "kernels/contracts/elementwise.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {

void add_cast(LoweringTable& table) {
  table["Cast"] = [](Builder& b, const ir::Graph&, const ir::Node& node) {
    const ir::Dim count = element_count(node.output()->type.shape);
    b.launch(node, std::string(ir::name_of(node.output()->type.dtype)), "elements",
             b.kernel("cast", "cast"),
             kernels::Cast<Argument>{.x = b.in(node.inputs[0]),
                                     .from = type_code(node.inputs[0]->type.dtype),
                                     .y = b.out(node.output()),
                                     .to = type_code(node.output()->type.dtype),
                                     .count = Size{count},
                                     .chunk = b.chunk()},
             {Size{count, b.chunk()}, Size{}, Size{}});
  };
}

}  // namespace bertcl::plan
