// SPDX-License-Identifier: Apache-2.0
// Batched integer MatMul with any strides (MatMulInteger): exact in s32.
//
//   C[b][m][n] = sum_k (A[b][m][k] - a_zero_point[m]) * (B[b][k][n] - b_zero_point[n])
//
//   A, B u8 or s8; element (m, k) of batch b at place_a(b) + m * a_row + k * a_column: a
//   transposed A is the same with the two strides exchanged. B likewise with b_row (along k) and
//   b_column (along n).
//   zero points  in the type of their operand; one (step 0), or one for each row of A or column
//                of B (step 1); null for 0
//   C  row-major [batches][m][n] s32
//   batch_shape  int: dims[rank], strides of A[rank], strides of B[rank], in elements, of the batch
//                dimensions; 0 repeats (broadcast). rank 0: one batch.
//
//               PANEL
//             o-------o               A work-item makes block_rows rows of PANEL columns, TILE rows
//       DEPTH |  [B]  | copied        at a time, from f32 copies of DEPTH of K of both sides: a
//    DEPTH    o-------o               product is at most 255 * 255, so 256 of them sum exactly in
//   o-----o   o-------o               f32; the blocks are summed in s32.
//   | [A] |   |  [C]  | TILE
//   o-----o   o-------o
//   copied
//
// Grid: (ceil(n / PANEL), ceil(m / block_rows), batches), PANEL = 32, local size 1.
// Bounds: none; block_rows best a multiple of 8, large enough that the copy of B does not matter
// (64).
#include "gemm/matmul_batched.clh"
#include "gemm/matmul_s32.clh"

#define DEPTH 256  // not more: see above

// The hint: see ONE_ITEM in persistent/place.clh.
__attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(float16)))
__kernel void matmul_s32_batched(MATMUL_S32_PARAMETERS) {
  floatv panel[DEPTH * VECTORS];  // [k][columns]
  float rows[TILE * DEPTH];       // [rows][k]
  const int column = get_global_id(0) * PANEL, columns = min(PANEL, n - column);
  const int first = get_global_id(1) * block_rows, last = min(first + block_rows, m);
  const int batch = get_global_id(2);
  a += place_of(batch, rank, batch_shape, batch_shape + rank);
  b += place_of(batch, rank, batch_shape, batch_shape + 2 * rank);
  c += (size_t)batch * m * n + column;

  int b_zero[PANEL];
  for (int j = 0; j < columns; j++)
    b_zero[j] = load_zero_point(b_zero_point, column + j, b_zero_step, b_type);

  for (int start = 0; start < k || start == 0; start += DEPTH) {
    const int depth = min(DEPTH, k - start);
    float* lane = (float*)panel;
    for (int i = 0; i < depth; i++)
      for (int j = 0; j < PANEL; j++)
        lane[i * PANEL + j] =
            j < columns ? (float)(load(b, (long)(start + i) * b_row + (long)(column + j) * b_column,
                                       b_type) -
                                  b_zero[j])
                        : 0.0f;
    for (int row = first; row < last; row += TILE) {
      for (int t = 0; t < TILE; t++) {
        const int m_of = min(row + t, last - 1);
        const int zero = load_zero_point(a_zero_point, m_of, a_zero_step, a_type);
        for (int i = 0; i < depth; i++)
          rows[t * DEPTH + i] =
              (float)(load(a, (long)m_of * a_row + (long)(start + i) * a_column, a_type) - zero);
      }
      floatv sums[TILE * VECTORS];
#pragma unroll
      for (int t = 0; t < TILE * VECTORS; t++) sums[t] = 0.0f;
      for (int i = 0; i < depth; i++) {
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          const floatv x = rows[t * DEPTH + i];
#pragma unroll
          for (int v = 0; v < VECTORS; v++)
            sums[t * VECTORS + v] = fma(x, panel[i * VECTORS + v], sums[t * VECTORS + v]);
        }
      }
      const float* sum = (const float*)sums;
      for (int t = 0; t < min(TILE, last - row); t++) {
        __global int* to = c + (size_t)(row + t) * n;
        for (int j = 0; j < columns; j++) to[j] = (start ? to[j] : 0) + (int)sum[t * PANEL + j];
      }
    }
  }
}
