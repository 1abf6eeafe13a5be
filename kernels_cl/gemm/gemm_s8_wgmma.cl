// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for NVIDIA's warpgroups, sm_90a: out[M][N] = epilogue(A[M][K] x B[K][N]).
//
// A work-group of two warpgroups makes a tile: each 64 of its 128 rows, or of 64 rows each a half
// of the columns. K passes in strips of CELLS_K cells of 16 bytes, which cp.async brings to local
// memory in a ring of STAGES strips, where wgmma reads them itself (wgmma.clh):
//
//                TILE_N
//           o---------------o         ring  | k - 2 | k - 1 |   k   | k + 1 |
//    TILE_M |   group 0     |               | copied|   multiplied  | ready |
//           o---------------o         strip | TILE_M rows | TILE_N columns |
//           |   group 1     |
//           o---------------o         a row is CELLS_K cells of 16 bytes, swizzled
//
// Products of strip k begin while those of k - 1 are made. That of k - 2 is free after the barrier
// of step k: both warpgroups have waited for its products before it.
//
// Layout: panel width 64, K group 16: B[ceil(N/64)][ceil(K/16)][64][16], zero-padded past N and K.
// Grid: (ITEMS * ceil(M/TILE_M), ceil(N/TILE_N)), work-group (ITEMS,1,1).
// Arguments: see gemm_s8_ref.cl; a begins at a multiple of 16 bytes. ACTIVATION and OUT_TYPE as in
// gemm_s8_mma.cl.
#ifndef TILE_M
#define TILE_M 128  // rows of a work-group: 64 or 128
#endif
#ifndef TILE_N
#define TILE_N 256  // columns of a work-group: 64, 128 or 256
#endif
#ifndef CELLS_K
#define CELLS_K (TILE_M + TILE_N > 192 ? 2 : 4)  // of a row of a strip: 2 or 4
#endif
#define ITEMS 256
#define STRIP ((TILE_M + TILE_N) * CELLS_K)   // cells
#define MOST_STAGES (48 * 1024 / 16 / STRIP)  // more local memory no driver gives
#ifndef STAGES
#define STAGES (MOST_STAGES < 6 ? MOST_STAGES : 6)  // of the ring, at least 3
#endif
#if STAGES < 3
#error "two strips are multiplied while at least one is on its way"
#endif
#ifndef COPY_ASYNC
#define COPY_ASYNC 1  // 2: by cp.async, 1: emulated (copy_async.clh)
#endif
#define WGMMA_N (TILE_N / (2 / (TILE_M / 64)))
#include "gemm/epilogue4.clh"
#include "gemm/parameters.clh"
#include "gemm/steps.clh"
#include "units/wgmma.clh"
#define A_AT(row, cell) CELL_AT(row, cell)
#define B_AT(column, cell) (TILE_M * CELLS_K + CELL_AT(column, cell))
#include "gemm/gemm_s8_cells.clh"

#define AHEAD (STAGES - 2)                  // strips on their way
#define PART (WGMMA_N < 64 ? WGMMA_N : 64)  // columns on their way out at once
#define LANES_N (PART / 4)                  // work-items that finish a row of a part
#define LANES_M (32 / LANES_N)
#define SUMS_PITCH (PART + 8)
#define SUMS_CELLS (16 * SUMS_PITCH / 4)  // of 16 rows of a part, which 32 work-items have
#define SPACE (STAGES * STRIP > 8 * SUMS_CELLS ? STAGES * STRIP : 8 * SUMS_CELLS)

// `a_signed` is known where this is called: each sign has a loop of its own.
__attribute__((always_inline)) static void accumulate(const Operands* o, __local int4* space,
                                                      bool a_signed, int* sums) {
  const int steps = steps_of(o->K, 16 * CELLS_K), group = o->item / WGMMA_ITEMS;
  const int row0 = TILE_M > 64 ? group * 64 : 0, column0 = TILE_M > 64 ? 0 : group * WGMMA_N;
  WGMMA_UNROLL
  for (int step = 0; step < AHEAD; step++) {
    if (step < steps) fetch(o, step, space + step * STRIP);
    COPY_COMMIT();
  }
  int stage = 0, next_stage = AHEAD;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    __local const int4* strip = space + stage * STRIP;
    COPY_WAIT(AHEAD - 1);
    PROXY_FENCE();
    barrier(CLK_LOCAL_MEM_FENCE);
    WGMMA_FENCE();
    WGMMA_UNROLL
    for (int c = 0; c < CELLS_K; c += 2)
      WGMMA(sums, strip + row0 * CELLS_K, strip + (TILE_M + column0) * CELLS_K, c, a_signed,
            o->item);
    WGMMA_COMMIT();
    if (step + AHEAD < steps) fetch(o, step + AHEAD, space + next_stage * STRIP);
    COPY_COMMIT();  // a group for each step, also an empty one: COPY_WAIT counts them
    WGMMA_WAIT(1);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next_stage = next_stage + 1 == STAGES ? 0 : next_stage + 1;
  }
  WGMMA_WAIT_ALL(sums);
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_s8(GEMM_S8_PARAMETERS) {
  __local int4 space[SPACE] __attribute__((aligned(1024)));  // strips, then sums
  const int item = get_local_id(0), lane = item % 32, group = item / WGMMA_ITEMS;
  const Operands o = {a,
                      (__global const int4*)b,
                      M,
                      N,
                      K,
                      (int)get_group_id(0) * TILE_M,
                      (int)get_group_id(1) * TILE_N,
                      item};
  int sums[WGMMA_SUMS];
  WGMMA_UNROLL
  for (int i = 0; i < WGMMA_SUMS; i++) sums[i] = 0;
  if (!MATRIX_EMULATED && a_signed)
    accumulate(&o, space, true, sums);
  else
    accumulate(&o, space, MATRIX_EMULATED && a_signed, sums);

  // A work-item finishes columns 4 (lane % LANES_N) .. of every LANES_M-th row of 16.
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed);
  const int row0 = o.row0 + (TILE_M > 64 ? group * 64 : 0) + item % WGMMA_ITEMS / 32 * 16;
  const int column0 = o.column0 + (TILE_M > 64 ? 0 : group * WGMMA_N) + lane % LANES_N * 4;
  __local int* own = (__local int*)(space + item / 32 * SUMS_CELLS);
  WGMMA_UNROLL
  for (int part = 0; part < WGMMA_N / PART; part++) {
    const int column = column0 + part * PART;
    const Columns4 c = load_columns4(column, N, zero, column_sums, scale, bias, out_inv_scale,
                                     out_zero_point, has_bias, OUT_TYPE, x_scale, w_zero_point);
    barrier(CLK_LOCAL_MEM_FENCE);
    WGMMA_UNROLL
    for (int i = 0; i < PART / 2; i += 2)
      *(__local int2*)(own + WGMMA_ROW(lane, i) * SUMS_PITCH + WGMMA_COLUMN(lane, i)) =
          (int2)(sums[part * (PART / 2) + i], sums[part * (PART / 2) + i + 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int r = lane / LANES_N; r < 16; r += LANES_M) {
      const int4 s = *(__local const int4*)(own + r * SUMS_PITCH + lane % LANES_N * 4);
      if (row0 + r < M && column < N)
        finish4_s8(s, &c, row0 + r, column, N, out, ACTIVATION, OUT_TYPE, row_sums, w_zero_point,
                   row_scale);
    }
  }
}
