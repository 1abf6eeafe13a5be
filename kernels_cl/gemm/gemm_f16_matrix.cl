// SPDX-License-Identifier: Apache-2.0
// fp16 GEMM for GPUs with matrix units: out[M][N] = activation(A[M][K] x B[K][N] + bias), by
// gemm_matrix.clh. A and the result are f32; A is rounded to f16 (half to even) when copied to
// local memory; sums are f32.
//
// Layout: panel width 64, K group 2: B[ceil(N/64)][ceil(K/2)][64][2] in f16, zero-padded past N
// and K.
// Tile: TILE_M rows.  Grid: (ITEMS * ceil(M/TILE_M), ceil(N/TILE_N)), work-group (ITEMS,1,1).
// Arguments: see gemm_f32_ref.cl.
#define MATRIX_F16 1
#include "gemm/gemm_matrix.clh"
#include "gemm/parameters.clh"

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) UNIT_ATTRIBUTE __kernel void gemm_f32(
    GEMM_F32_PARAMETERS(ushort)) {
  __local int space[SPACE] __attribute__((aligned(16)));  // strips, then sums
  MATRIX_EXCHANGE(exchange, ITEMS);
  const int item = get_local_id(0), sub = item / UNIT_LANES, lane = item % UNIT_LANES;
  const Operands o = {a, (__global const int*)b, M, N, K, (int)get_group_id(0) * TILE_M,
                      (int)get_group_id(1) * TILE_N, 0, item};
  UnitC sums[SUB_ROWS][SUB_COLUMNS];
  accumulate(&o, space, exchange, sums);

  // A lane finishes columns 4 (lane % LANES_N) .. of every LANES_M-th row.
  const int row0 = o.row0 + sub / SUBS_N * SUB_M;
  const int column = o.column0 + sub % SUBS_N * SUB_N + lane % LANES_N * 4;
  const float4 c = has_bias ? load4_f32(bias, column, N) : (float4)(0.0f);
  __local float* own = (__local float*)space + sub * SUMS_SIZE;
  EPILOGUE_UNROLL
  for (int i = 0; i < SUB_ROWS; i++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    lay_out(sums, i, lane, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column >= N) continue;
    const int first = row0 + i * UNIT_M, end = min(M, first + UNIT_M);
    for (int row = first + lane / LANES_N; row < end; row += LANES_M) {
      const float4 s = vload4(0, own + SUM_PLACE(row - first, lane % LANES_N * 4));
      const float4 x = activate_v4(s + c, activation);
      STORE4(x, out + (size_t)row * N + column, N - column, float4);
    }
  }
}
