// SPDX-License-Identifier: Apache-2.0
// Tests whether wgmma (wgmma.clh) is exact: warpgroup s of two makes out[s] = start[s] + A[64][64]
// x B[64][64] transposed, of bytes that are contiguous in both; A is s8 in the first, u8 in the
// second. start, out [2][64][64]. K passes in strips of CELLS_K cells, as in gemm_s8_wgmma.cl:
// their number gives the swizzle.
#ifndef CELLS_K
#define CELLS_K 4  // cells of 16 bytes of a row of a strip: 2 or 4
#endif
#define ROW_CELLS 4                 // all of a row
#define STRIP_CELLS (64 * CELLS_K)  // of 64 rows
#define WGMMA_N 64
#include "units/wgmma.clh"

__attribute__((reqd_work_group_size(256, 1, 1))) __kernel void probe_wgmma(
    __global const int4* a, __global const int4* b, __global const int* start, __global int* out) {
  __local int4 a_tile[WGMMA_M * ROW_CELLS] __attribute__((aligned(1024)));
  __local int4 b_tile[WGMMA_N * ROW_CELLS] __attribute__((aligned(1024)));
  const int item = get_local_id(0), group = item / WGMMA_ITEMS;
  const int row = item / ROW_CELLS, strip = item % ROW_CELLS / CELLS_K;
  const int place = strip * STRIP_CELLS + CELL_AT(row, item % CELLS_K);
  a_tile[place] = a[item];
  b_tile[place] = b[item];
  PROXY_FENCE();
  barrier(CLK_LOCAL_MEM_FENCE);
  int sums[WGMMA_SUMS];
#pragma unroll
  for (int i = 0; i < WGMMA_SUMS; i++)
    sums[i] = start[(group * WGMMA_M + WGMMA_ROW(item, i)) * WGMMA_N + WGMMA_COLUMN(item, i)];
  WGMMA_FENCE();
#pragma unroll
  for (int c = 0; c < ROW_CELLS; c += 2)
    WGMMA(sums, a_tile + c / CELLS_K * STRIP_CELLS, b_tile + c / CELLS_K * STRIP_CELLS, c % CELLS_K,
          group == 0, item);
  WGMMA_COMMIT();
  WGMMA_WAIT_ALL(sums);
#pragma unroll
  for (int i = 0; i < WGMMA_SUMS; i++)
    out[(group * WGMMA_M + WGMMA_ROW(item, i)) * WGMMA_N + WGMMA_COLUMN(item, i)] = sums[i];
}
