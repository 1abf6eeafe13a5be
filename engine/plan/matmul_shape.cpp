// SPDX-License-Identifier: Apache-2.0
// The extents of a matrix multiplication of two computed operands.
#include "plan/matmul_shape.hpp"

#include <algorithm>

namespace bertcl::plan {
namespace {

/// The shape of an operand with at least two dimensions; a vector gets a 1 on the side given.
ir::Shape matrix_shape(const ir::Shape& shape, bool row_vector) {
  if (shape.size() > 1) return shape;
  return row_vector ? ir::Shape{ir::Dim(1), shape[0]} : ir::Shape{shape[0], ir::Dim(1)};
}

}  // namespace

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

}  // namespace bertcl::plan
