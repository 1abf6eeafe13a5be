// SPDX-License-Identifier: Apache-2.0
// Launch steps of MatMuls that are not a linear: both operands are computed (attention that stayed
// unfused), or the integer sums are read.
#include <algorithm>
#include <span>

#include "kernels/contracts/gemm.hpp"
#include "kernels/shared_numbers.hpp"
#include "kernels/variants.hpp"
#include "opencl/launch/blas.hpp"
#include "plan/lowering_table.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

/// C[batch][m][n] = A[batch][m][k] x B[batch][k][n]; a vector is a row on the left and a column on
/// the right.
struct MatMulShape {
  ir::Dim m, n, k;
  ir::Dim batches;
  View batch;  // the batch dimensions, with the strides of A and B
};

/// The shape of an operand with at least two dimensions; a vector gets a 1 on the side given.
ir::Shape matrix_shape(const ir::Shape& shape, bool row_vector) {
  if (shape.size() > 1) return shape;
  return row_vector ? ir::Shape{ir::Dim(1), shape[0]} : ir::Shape{shape[0], ir::Dim(1)};
}

/// The MatMul of tensors of these shapes by NumPy's rule: batch dimensions broadcast.
MatMulShape matmul_shape_of(const ir::Shape& left, const ir::Shape& right) {
  const ir::Shape a = matrix_shape(left, true);
  const ir::Shape w = matrix_shape(right, false);
  const ir::Dim m = a[a.size() - 2], k = a.back(), n = w.back();
  const Strides a_strides = row_major(a), w_strides = row_major(w);

  // Batch dimensions of the two operands, broadcast against each other.
  const ir::Shape a_batch(a.begin(), a.end() - 2), w_batch(w.begin(), w.end() - 2);
  const std::size_t rank = std::max(a_batch.size(), w_batch.size());
  View batch;
  batch.strides.resize(2);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto at = [&](const ir::Shape& s) {
      const std::size_t missing = rank - s.size();
      return d < missing ? ir::Dim(1) : s[d - missing];
    };
    const ir::Dim extent = at(a_batch) == ir::Dim(1) ? at(w_batch) : at(a_batch);
    batch.extents.push_back(extent);
    const auto stride = [&](const ir::Shape& s, const Strides& strides) {
      const std::size_t missing = rank - s.size();
      if (d < missing || s[d - missing] == ir::Dim(1)) return ir::Dim(0);
      return strides[d - missing];
    };
    batch.strides[0].push_back(stride(a_batch, a_strides));
    batch.strides[1].push_back(stride(w_batch, w_strides));
  }
  const ir::Dim batches = element_count(batch.extents);
  return {m, n, k, batches, coalesced(std::move(batch))};
}

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
  return b.call(node, Arithmetic::fp32, "clblast", call,
                {.a = b.in(node.inputs[0]), .b = b.in(node.inputs[1]), .c = b.out(node.output())});
}

/// Launches `kernel` of the variant for the device, by work-groups on a GPU, else by work-items.
Step& launch_matmul(Builder& b, const ir::Node& node, Arithmetic type,
                    std::span<const kernels::KernelVariant> variants, const char* kernel,
                    const MatMulShape& p, auto arguments) {
  using kernels::kMatMulItems, kernels::kMatMulPanel, kernels::kMatMulSide;
  constexpr std::int32_t kBlockRows = 64;  // of a work-item
  const auto choice = choose(b, node, variants);
  const kernels::KernelVariant& variant = *choice.variant;
  const bool by_groups = variant.divides;
  arguments.a_row = SizeExpr{p.k}, arguments.a_column = 1;
  arguments.b_row = SizeExpr{p.n}, arguments.b_column = 1;
  arguments.c = b.out(node.output());
  arguments.m = SizeExpr{p.m}, arguments.n = SizeExpr{p.n}, arguments.k = SizeExpr{p.k};
  arguments.batch_shape = table_of(p.batch);
  arguments.rank = static_cast<std::int32_t>(p.batch.extents.size());
  arguments.block_rows = kBlockRows;
  Step& step =
      b.launch(node, type, variant.name, b.kernel(variant.program, kernel), arguments,
               {by_groups ? SizeExpr{p.n, kMatMulSide, kMatMulItems} : SizeExpr{p.n, kMatMulPanel},
                SizeExpr{p.m, by_groups ? kMatMulSide : kBlockRows}, SizeExpr{p.batches}});
  if (by_groups) step.local[0] = kMatMulItems;
  step.why_not_faster = choice.why_not_faster;
  return step;
}

void count_operations(Step& step, const MatMulShape& p) {
  step.operations_per_unit = 2;
  step.work_units = p.batches * p.m * p.n * p.k;
}

void lower_matmul(Builder& b, const ir::Graph&, const ir::Node& node) {
  check_type(node, node.output()->type.dtype, {ir::DType::f32});
  const ir::Value *x = node.inputs[0], *w = node.inputs[1];
  const MatMulShape p = matmul_shape_of(x->type.shape, w->type.shape);
  const bool by_clblast = b.options().gemm == GemmLibrary::clblast && p.batch.extents.size() <= 1;
  Step& step =
      by_clblast
          ? lower_clblast(b, node, p)
          : launch_matmul(b, node, Arithmetic::fp32, kernels::matmul_f32_variants(),
                          "matmul_f32_batched", p,
                          kernels::MatMulF32<Argument>{.a = b.in(x), .b = b.in(w), .alpha = 1.0f});
  count_operations(step, p);
}

/// 0: one zero point for all, 1: one for each row or column.
std::int32_t step_of(const ir::Value* zero_point) {
  return zero_point && !ir::is_scalar(zero_point) ? 1 : 0;
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
  count_operations(launch_matmul(b, node, Arithmetic::int8, kernels::matmul_s32_variants(),
                                 "matmul_s32_batched", p, arguments),
                   p);
}

}  // namespace

void add_matmul(LoweringTable& table) {
  table["MatMul"] = lower_matmul;
  table["MatMulInteger"] = lower_matmul_integer;
}

}  // namespace bertcl::plan
