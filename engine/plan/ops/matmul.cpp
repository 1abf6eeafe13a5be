// SPDX-License-Identifier: Apache-2.0
// Launch steps of MatMuls that are not a linear: both operands are computed (attention that stayed
// unfused), or the integer sums are read.
#include "kernels/contracts/gemm.hpp"
#include "opencl/blas.hpp"
#include "plan/matmul_kernel.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// GemmStridedBatched takes one distance from matrix to matrix of each operand.
Step& lower_clblast(Builder& b, const ir::Node& node, const MatMulShape& p) {
  const ir::Dim a_stride = p.batch.extents.empty() ? ir::Dim(0) : p.batch.strides[0][0];
  const ir::Dim b_stride = p.batch.extents.empty() ? ir::Dim(0) : p.batch.strides[1][0];
  opencl::Context* context = &b.context();
  const auto call = [=, label = node.output()->name](std::span<opencl::Buffer* const> buffers,
                                                     const ir::Bindings& sizes) {
    const auto size = [&](const ir::Dim& d) { return static_cast<std::size_t>(d.evaluate(sizes)); };
    opencl::Gemm gemm;
    gemm.m = size(p.m), gemm.n = size(p.n), gemm.k = size(p.k);
    gemm.beta = 0;
    gemm.batch = size(p.batches);
    gemm.a_stride = size(a_stride), gemm.b_stride = size(b_stride);
    gemm.c_stride = gemm.m * gemm.n;
    opencl::gemm_f32(*context, gemm, *buffers[0], *buffers[1], *buffers[2], label);
  };
  return b.call(node, "fp32", "clblast", call,
                {.a = b.in(node.inputs[0]), .b = b.in(node.inputs[1]), .c = b.out(node.output())});
}

/// Launches matmul_`numbers`_batched of the variant for the device; `type`: of the arithmetic.
Step& launch_matmul(Builder& b, const ir::Node& node, const char* type, const std::string& numbers,
                    const MatMulShape& p, auto arguments) {
  const MatMulKernel kernel = matmul_kernel(b, node, numbers, p);
  arguments.a_row = SizeExpr{p.k}, arguments.a_column = 1;
  arguments.b_row = SizeExpr{p.n}, arguments.b_column = 1;
  arguments.c = b.out(node.output());
  arguments.m = SizeExpr{p.m}, arguments.n = SizeExpr{p.n}, arguments.k = SizeExpr{p.k};
  arguments.batch_shape = table_of(p.batch);
  arguments.rank = static_cast<std::int32_t>(p.batch.extents.size());
  arguments.block_rows = kMatMulBlockRows;
  Step& step = b.launch(node, type, kernel.variant,
                        b.kernel(kernel.program, "matmul_" + numbers + "_batched"), arguments,
                        kernel.global);
  step.local = kernel.local;
  step.why_not_faster = kernel.why_not_faster;
  return step;
}

void count_operations(Step& step, const MatMulShape& p) {
  step.operations_per_unit = 2;
  step.work_units = p.batches * p.m * p.n * p.k;
}

void lower_matmul(Builder& b, const ir::Graph&, const ir::Node& node) {
  supported_type(node, node.output()->type.dtype, {ir::DType::f32});
  const ir::Value *x = node.inputs[0], *w = node.inputs[1];
  const MatMulShape p = matmul_shape_of(x->type.shape, w->type.shape);
  const bool by_clblast = b.options().gemm == "clblast" && p.batch.extents.size() <= 1;
  Step& step =
      by_clblast
          ? lower_clblast(b, node, p)
          : launch_matmul(b, node, "fp32", "f32", p,
                          kernels::MatMulF32<Argument>{.a = b.in(x), .b = b.in(w), .alpha = 1.0f});
  count_operations(step, p);
}

/// 0: one zero point for all, 1: one for each row or column.
std::int32_t step_of(const ir::Value* zero_point) {
  return zero_point && element_count(zero_point->type.shape) != ir::Dim(1) ? 1 : 0;
}

void lower_matmul_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value *x = node.inputs[0], *w = node.inputs[1];
  const ir::Value *x_zero = node.input(2), *w_zero = node.input(3);
  const MatMulShape p = matmul_shape_of(x->type.shape, w->type.shape);
  const kernels::MatMulS32<Argument> arguments{.a = b.in(x),
                                               .a_type = type_code(x->type.dtype),
                                               .a_zero_point = b.in(x_zero),
                                               .a_zero_step = step_of(x_zero),
                                               .b = b.in(w),
                                               .b_type = type_code(w->type.dtype),
                                               .b_zero_point = b.in(w_zero),
                                               .b_zero_step = step_of(w_zero)};
  count_operations(launch_matmul(b, node, "int8", "s32", p, arguments), p);
}

}  // namespace

void add_matmul(LoweringTable& table) {
  table["MatMul"] = lower_matmul;
  table["MatMulInteger"] = lower_matmul_integer;
}

}  // namespace bertcl::plan
