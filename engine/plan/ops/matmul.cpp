// SPDX-License-Identifier: Apache-2.0
// Launch step of a float MatMul whose operands are both computed (attention that stayed unfused).
#include "plan/ops/ops.hpp"
#include "plan/strided.hpp"

namespace bertcl::plan {
namespace {

constexpr std::int32_t panel = 32;  // columns of a work-item in matmul_f32_batched.cl
constexpr std::int32_t block_rows = 64;

/// The shape of an operand with at least two dimensions; a vector gets a 1 on the side given.
ir::Shape matrix_shape(const ir::Shape& shape, bool row_vector) {
  if (shape.size() > 1) return shape;
  return row_vector ? ir::Shape{ir::Dim(1), shape[0]} : ir::Shape{shape[0], ir::Dim(1)};
}

void lower(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.output()->type.dtype != ir::DType::f32)
    throw Error(fmt::format("{}: no kernel for element type {}; f32 has one", node.describe(),
                            ir::name_of(node.output()->type.dtype)));
  const ir::Shape a = matrix_shape(node.inputs[0]->type.shape, true);
  const ir::Shape w = matrix_shape(node.inputs[1]->type.shape, false);
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
  batch = joined(std::move(batch));
  Step& step =
      b.launch(node, "fp32", "batched", b.kernel("matmul_f32_batched", "matmul_f32_batched"),
               {b.in(node.inputs[0]), Size{k}, std::int32_t{1}, b.in(node.inputs[1]), Size{n},
                std::int32_t{1}, b.out(node.output()), Size{m}, Size{n}, Size{k}, 1.0f,
                table_of(batch), static_cast<std::int32_t>(batch.extents.size()), block_rows},
               {Size{n, panel}, Size{m, block_rows}, Size{batches}});
  step.operations_per_unit = 2;
  step.unit = batches * m * n * k;
}

}  // namespace

void add_matmul(LoweringTable& table) { table["MatMul"] = lower; }

}  // namespace bertcl::plan
