// SPDX-License-Identifier: Apache-2.0
// Tests whether wgmma (wgmma.clh) is exact: warpgroup s of two makes out[s] = start[s] + A[64][64]
// x B[64][64] transposed, of bytes that are contiguous in both; A is s8 in the first, u8 in the
// second. start, out [2][64][64].
#define CELLS_K 4
#define WGMMA_N 64
#include "units/wgmma.clh"

__attribute__((reqd_work_group_size(256, 1, 1))) __kernel void probe_wgmma(
    __global const int4* a, __global const int4* b, __global const int* start, __global int* out) {
  __local int4 a_tile[WGMMA_M * CELLS_K] __attribute__((aligned(1024)));
  __local int4 b_tile[WGMMA_N * CELLS_K] __attribute__((aligned(1024)));
  const int item = get_local_id(0), group = item / WGMMA_ITEMS;
  a_tile[CELL_AT(item / CELLS_K, item % CELLS_K)] = a[item];
  b_tile[CELL_AT(item / CELLS_K, item % CELLS_K)] = b[item];
  PROXY_FENCE();
  barrier(CLK_LOCAL_MEM_FENCE);
  int sums[WGMMA_SUMS];
#pragma unroll
  for (int i = 0; i < WGMMA_SUMS; i++)
    sums[i] = start[(group * WGMMA_M + WGMMA_ROW(item, i)) * WGMMA_N + WGMMA_COLUMN(item, i)];
  WGMMA_FENCE();
#pragma unroll
  for (int c = 0; c < CELLS_K; c += 2) WGMMA(sums, a_tile, b_tile, c, group == 0, item);
  WGMMA_COMMIT();
  WGMMA_WAIT_ALL(sums);
#pragma unroll
  for (int i = 0; i < WGMMA_SUMS; i++)
    out[(group * WGMMA_M + WGMMA_ROW(item, i)) * WGMMA_N + WGMMA_COLUMN(item, i)] = sums[i];
}
