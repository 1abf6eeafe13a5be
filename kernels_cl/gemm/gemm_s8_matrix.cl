// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for GPUs with matrix units: out[M][N] = epilogue(A[M][K] x B[K][N]), by
// gemm_matrix.clh.
//
// u8 bytes of A and its zero point are read as s8 by subtracting 128, so a unit only needs s8 x s8.
//
// Layout: panel width 64, K group 4: B[ceil(N/64)][ceil(K/4)][64][4], zero-padded past N and K.
// Tile: TILE_M rows.  Grid: (ITEMS * ceil(M/TILE_M), ceil(N/TILE_N)), work-group (ITEMS,1,1).
// Arguments: see gemm_s8_ref.cl; a begins at a multiple of 16 bytes. With ACTIVATION and OUT_TYPE
// given, those two are not read: code for all of them takes more registers than a lane has.
#include "gemm/gemm_matrix.clh"
#include "gemm/parameters.clh"

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) UNIT_ATTRIBUTE __kernel void gemm_s8(
    GEMM_S8_PARAMETERS) {
  __local int space[SPACE] __attribute__((aligned(16)));  // strips, then sums
  MATRIX_EXCHANGE(exchange, ITEMS);
  const int item = get_local_id(0), sub = item / UNIT_LANES, lane = item % UNIT_LANES;
  const Operands o = {a, (__global const int*)b, M, N, K, (int)get_group_id(0) * TILE_M,
                      (int)get_group_id(1) * TILE_N, a_signed ? 0 : SIGN_BITS, item};
  UnitC sums[SUB_ROWS][SUB_COLUMNS];
  accumulate(&o, space, exchange, sums);

  // A lane finishes columns 4 (lane % LANES_N) .. of every LANES_M-th row.
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128);
  const int row0 = o.row0 + sub / SUBS_N * SUB_M;
  const int column = o.column0 + sub % SUBS_N * SUB_N + lane % LANES_N * 4;
  const Columns4 c = load_columns4(column, N, zero, column_sums, scale, bias, out_inv_scale,
                                   out_zero_point, has_bias, OUT_TYPE, x_scale, w_zero_point);
  __local int* own = space + sub * SUMS_SIZE;
  EPILOGUE_UNROLL
  for (int i = 0; i < SUB_ROWS; i++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    lay_out(sums, i, lane, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column >= N) continue;
    const int first = row0 + i * UNIT_M, end = min(M, first + UNIT_M);
    for (int row = first + lane / LANES_N; row < end; row += LANES_M) {
      const int4 s = vload4(0, own + SUM_PLACE(row - first, lane % LANES_N * 4));
      finish4_s8(s, &c, row, column, N, out, ACTIVATION, OUT_TYPE, row_sums, w_zero_point,
                 row_scale);
    }
  }
}
