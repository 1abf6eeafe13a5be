// SPDX-License-Identifier: Apache-2.0
// Launch step of a float MatMul whose operands are both computed (attention that stayed unfused).
#include "kernels/contracts/gemm.hpp"
#include "opencl/blas.hpp"
#include "plan/matmul_kernel.hpp"
#include "plan/ops/ops.hpp"

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

Step& lower_own(Builder& b, const ir::Node& node, const MatMulShape& p) {
  const MatMulKernel kernel = matmul_kernel(b, node, "f32", p);
  Step& step = b.launch(
      node, "fp32", kernel.variant, b.kernel(kernel.program, "matmul_f32_batched"),
      kernels::MatMulF32<Argument>{.a = b.in(node.inputs[0]),
                                   .a_row = Size{p.k},
                                   .a_column = 1,
                                   .b = b.in(node.inputs[1]),
                                   .b_row = Size{p.n},
                                   .b_column = 1,
                                   .c = b.out(node.output()),
                                   .m = Size{p.m},
                                   .n = Size{p.n},
                                   .k = Size{p.k},
                                   .alpha = 1.0f,
                                   .batch_shape = table_of(p.batch),
                                   .rank = static_cast<std::int32_t>(p.batch.extents.size()),
                                   .block_rows = kMatMulBlockRows},
      kernel.global);
  step.local = kernel.local;
  step.why_not_faster = kernel.why_not_faster;
  return step;
}

void lower_matmul(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.output()->type.dtype != ir::DType::f32)
    throw Error(fmt::format("{}: no kernel for element type {} (supported: f32)", node.describe(),
                            ir::name_of(node.output()->type.dtype)));
  const MatMulShape p = matmul_shape_of(node.inputs[0]->type.shape, node.inputs[1]->type.shape);
  const bool by_clblast = b.options().gemm == "clblast" && p.batch.extents.size() <= 1;
  Step& step = by_clblast ? lower_clblast(b, node, p) : lower_own(b, node, p);
  step.operations_per_unit = 2;
  step.unit = p.batches * p.m * p.n * p.k;
}

}  // namespace

void add_matmul(LoweringTable& table) { table["MatMul"] = lower_matmul; }

}  // namespace bertcl::plan
