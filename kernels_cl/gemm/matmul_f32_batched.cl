// SPDX-License-Identifier: Apache-2.0
// Batched f32 MatMul with any strides: C[b][m][n] = alpha * sum_k A[b][m][k] * B[b][k][n].
//
//   A  element (m, k) of batch b at place_a(b) + m * a_row + k * a_column: a transposed A is the
//      same with the two strides exchanged. B likewise with b_row (along k) and b_column (along n).
//   C  row-major [batches][m][n]
//   batch_shape  int: dims[rank], strides of A[rank], strides of B[rank], in elements, of the batch
//                dimensions; 0 repeats (broadcast). rank 0: one batch.
//
//               PANEL
//             o-------o               A work-item makes block_rows rows of PANEL columns: it copies
//       DEPTH |  [B]  | copied        PANEL columns of B into private memory, DEPTH of K at a time,
//    DEPTH    o-------o               then multiplies them with TILE rows of A at a time, whose
//   o-----o   o-------o               sums are in registers.
//   | [A] |   |  [C]  | TILE
//   o-----o   o-------o
//
// Grid: (ceil(n / PANEL), ceil(m / block_rows), batches), PANEL = 32, local size 1.
// Bounds: none; block_rows best a multiple of 8, large enough that the copy does not matter (64).
#include "gemm/matmul_batched.clh"
#include "gemm/parameters.clh"

#ifndef DEPTH
#define DEPTH 256  // rows of B held at a time
#endif

// The hint: see ONE_ITEM in persistent/place.clh.
__attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float16)))
__kernel void matmul_f32_batched(MATMUL_F32_PARAMETERS) {
  floatv panel[DEPTH * VECTORS];  // [k][columns]
  const int column = get_global_id(0) * PANEL, columns = min(PANEL, n - column);
  const int first = get_global_id(1) * block_rows, last = min(first + block_rows, m);
  const int batch = get_global_id(2);
  a += place_of(batch, rank, batch_shape, batch_shape + rank);
  b += place_of(batch, rank, batch_shape, batch_shape + 2 * rank) + (long)column * b_column;
  c += (size_t)batch * m * n + column;

  for (int start = 0; start < k || start == 0; start += DEPTH) {
    const int depth = min(DEPTH, k - start);
    float* lane = (float*)panel;
    if (b_column == 1) {
      for (int i = 0; i < depth; i++)
        for (int j = 0; j < PANEL; j++)
          lane[i * PANEL + j] = j < columns ? b[(long)(start + i) * b_row + j] : 0.0f;
    } else {
      for (int j = 0; j < PANEL; j++)
        for (int i = 0; i < depth; i++)
          lane[i * PANEL + j] =
              j < columns ? b[(long)(start + i) * b_row + (long)j * b_column] : 0.0f;
    }
    for (int row = first; row < last; row += TILE) {
      floatv sums[TILE * VECTORS];
      __global const float* from[TILE];
#pragma unroll
      for (int t = 0; t < TILE; t++) {
        from[t] = a + (long)min(row + t, last - 1) * a_row + (long)start * a_column;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) sums[t * VECTORS + v] = 0.0f;
      }
      for (int i = 0; i < depth; i++) {
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          const floatv x = from[t][(long)i * a_column];
#pragma unroll
          for (int v = 0; v < VECTORS; v++)
            sums[t * VECTORS + v] = fma(x, panel[i * VECTORS + v], sums[t * VECTORS + v]);
        }
      }
      const float* sum = (const float*)sums;
      for (int t = 0; t < min(TILE, last - row); t++) {
        __global float* to = c + (size_t)(row + t) * n;
        for (int j = 0; j < columns; j++)
          to[j] = (start ? to[j] : 0.0f) + alpha * sum[t * PANEL + j];
      }
    }
  }
}
