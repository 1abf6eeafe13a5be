// SPDX-License-Identifier: Apache-2.0
// Launch step of a MatMulInteger that is not a linear_q: both operands computed, or its sums read.
#include "kernels/contracts/gemm.hpp"
#include "plan/matmul_kernel.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// 0: one zero point for all, 1: one for each row or column.
std::int32_t step_of(const ir::Value* zero_point) {
  return zero_point && element_count(zero_point->type.shape) != ir::Dim(1) ? 1 : 0;
}

void lower_matmul_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value *x = node.inputs[0], *w = node.inputs[1];
  const ir::Value *x_zero = node.input(2), *w_zero = node.input(3);
  const MatMulShape p = matmul_shape_of(x->type.shape, w->type.shape);
  const MatMulKernel kernel = matmul_kernel(b, node, "s32", p);
  Step& step = b.launch(
      node, "int8", kernel.variant, b.kernel(kernel.program, "matmul_s32_batched"),
      kernels::MatMulS32<Argument>{.a = b.in(x),
                                   .a_row = Size{p.k},
                                   .a_column = 1,
                                   .a_type = type_code(x->type.dtype),
                                   .a_zero_point = b.in(x_zero),
                                   .a_zero_step = step_of(x_zero),
                                   .b = b.in(w),
                                   .b_row = Size{p.n},
                                   .b_column = 1,
                                   .b_type = type_code(w->type.dtype),
                                   .b_zero_point = b.in(w_zero),
                                   .b_zero_step = step_of(w_zero),
                                   .c = b.out(node.output()),
                                   .m = Size{p.m},
                                   .n = Size{p.n},
                                   .k = Size{p.k},
                                   .batch_shape = table_of(p.batch),
                                   .rank = static_cast<std::int32_t>(p.batch.extents.size()),
                                   .block_rows = kMatMulBlockRows},
      kernel.global);
  step.local = kernel.local;
  step.why_not_faster = kernel.why_not_faster;
  step.operations_per_unit = 2;
  step.unit = p.batches * p.m * p.n * p.k;
}

}  // namespace

void add_matmul_integer(LoweringTable& table) { table["MatMulInteger"] = lower_matmul_integer; }

}  // namespace bertcl::plan
