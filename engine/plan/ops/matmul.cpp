// SPDX-License-Identifier: Apache-2.0
// Launch step of a float MatMul whose operands are both computed (attention that stayed unfused).
#include "plan/ops/ops.hpp"
#include "plan/product.hpp"

namespace bertcl::plan {
namespace {

constexpr std::int32_t panel = 32;  // columns of a work-item in matmul_f32_batched.cl
constexpr std::int32_t block_rows = 64;

void lower(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.output()->type.dtype != ir::DType::f32)
    throw Error(fmt::format("{}: no kernel for element type {}; f32 has one", node.describe(),
                            ir::name_of(node.output()->type.dtype)));
  const Product p = product_of(node.inputs[0]->type.shape, node.inputs[1]->type.shape);
  Step& step =
      b.launch(node, "fp32", "batched", b.kernel("matmul_f32_batched", "matmul_f32_batched"),
               {b.in(node.inputs[0]), Size{p.k}, std::int32_t{1}, b.in(node.inputs[1]), Size{p.n},
                std::int32_t{1}, b.out(node.output()), Size{p.m}, Size{p.n}, Size{p.k}, 1.0f,
                table_of(p.batch), static_cast<std::int32_t>(p.batch.extents.size()), block_rows},
               {Size{p.n, panel}, Size{p.m, block_rows}, Size{p.batches}});
  step.operations_per_unit = 2;
  step.unit = p.batches * p.m * p.n * p.k;
}

}  // namespace

void add_matmul(LoweringTable& table) { table["MatMul"] = lower; }

}  // namespace bertcl::plan
