// SPDX-License-Identifier: Apache-2.0
// The launch of pool: a sequence for each work-item or work-group.
#include <algorithm>
#include <iterator>

#include "kernels/contracts/rows.hpp"
#include "ops/operands.hpp"
#include "plan/lowering_table.hpp"
#include "plan/row_kernels.hpp"

namespace bertcl::plan {
namespace {

void lower_pool(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::pool;
  const ir::Value* x = node.inputs[o::x];
  if (x->type.shape.size() != 2)
    fail(node,
         "pooling needs packed tokens; keep the pass pack_tokens enabled, and pool with the "
         "encoder's mask");
  const ir::Shape& result = node.output()->type.shape;
  const std::string& kind = node.string_attribute("kind");
  kernels::Pool<Argument> arguments;
  arguments.x = b.in(x);
  arguments.seq_offsets = b.in(node.input(o::seq_offsets));
  if (node.int_attribute("masked", 0) != 0) arguments.key_mask = b.in(node.input(o::key_mask));
  arguments.out = b.out(node.output());
  arguments.kind =
      static_cast<std::int32_t>(std::ranges::find(o::kinds, kind) - std::begin(o::kinds));
  arguments.hidden = SizeExpr{x->type.shape[1]};
  arguments.columns = SizeExpr{result[1]};
  arguments.unit_norm = static_cast<std::int32_t>(node.has("normalize"));
  arguments.min_norm = static_cast<float>(o::min_norm);
  arguments.batch = SizeExpr{result[0]};
  launch_rows(b, node, Arithmetic::fp32, kernels::pool_variants(), "pool", arguments, result[0],
              {result[1], true, 1});
}

}  // namespace

void add_pool(LoweringTable& table) { table[ops::operands::pool::op] = lower_pool; }

}  // namespace bertcl::plan
