// SPDX-License-Identifier: Apache-2.0
// The extents of a matrix multiplication of two computed operands, for the batched kernels.
#pragma once
#include "plan/strided.hpp"

namespace bertcl::plan {

/// C[batch][m][n] = A[batch][m][k] x B[batch][k][n]; a vector is a row on the left and a column on
/// the right.
struct MatMulShape {
  ir::Dim m, n, k;
  ir::Dim batches;
  View batch;  // the batch dimensions, with the strides of A and B
};

/// The MatMul of tensors of these shapes by NumPy's rule: batch dimensions broadcast.
MatMulShape matmul_shape_of(const ir::Shape& a, const ir::Shape& b);

}  // namespace bertcl::plan
