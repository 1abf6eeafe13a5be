// SPDX-License-Identifier: Apache-2.0
// Small-M int8 GEMM for x86 with AVX-512 VNNI: out[M][N] = epilogue(A[M][K] x B[K][N]), bound by
// loading the weights from memory. Sums are exact.
//
//             N                    A and B as for gemm_s8_x86_vnni.cl. One work-item makes
//         o-------o                ITEM_TILES tiles of 8 rows x one panel; all go BLOCK_STEPS along
//       K |  [B]  |  block 0       K before any goes further, and fetch the next block meanwhile
//         |  [B]  |  block 1       (prefetch.clh). Between blocks the sums lie in private memory.
//      K  o-------o
//    o---o o-----o
//    |[A]| | [C] | tile 0          Any M, N, K >= 1; K at most 65,793 (int32 sums).
//    |[A]| | [C] | tile 1
//    o---o o-----o
//
// Layout: panel width 48, K group 4: B[ceil(N/48)][ceil(K/4)][48][4], zero-padded past N and K.
// Grid: (ceil(M/(ITEM_TILES * 8)), ceil(N/48)), work-group (1,1,1). Arguments: see gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/gemm_s8_x86_vnni.clh"

#ifndef ITEM_TILES
#define ITEM_TILES 4  // tiles of rows of a work-item
#endif

// One block of a tile, whose sums lie in memory between blocks: `steps` steps, and the bytes of K
// after them.
static void add_block(int16* sums, __global const uchar* const* row, __global const int* panel,
                      int steps, int tail, Prefetch prefetch, int a_signed) {
  int16 c[TILE_ROWS][TILE_VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < TILE_VECTORS; j++) c[i][j] = sums[i * TILE_VECTORS + j];
  }
  add_steps_prefetching(c, row, panel, 0, steps, prefetch, a_signed);
  if (tail) add_tail(c, row, panel, steps, tail, a_signed);
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < TILE_VECTORS; j++) sums[i * TILE_VECTORS + j] = c[i][j];
  }
}

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const int row0 = PLACE.id.x * ITEM_TILES * TILE_ROWS;
  const int rows = min(ITEM_TILES * TILE_ROWS, M - row0),
            tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
  const int column0 = PLACE.id.y * TILE_COLUMNS;
  const int whole = K / 4, groups = (K + 3) / 4;
  __global const int* panel =
      (__global const int*)b + PLACE.id.y * (size_t)groups * TILE_COLUMNS;

  int16 sums[ITEM_TILES * TILE_ROWS * TILE_VECTORS];
  for (int i = 0; i < tiles * TILE_ROWS * TILE_VECTORS; i++) sums[i] = 0;
  for (int k0 = 0; k0 < groups; k0 += BLOCK_STEPS, panel += BLOCK_STEPS * TILE_COLUMNS) {
    const int steps = min(BLOCK_STEPS, whole - k0), tail = k0 + BLOCK_STEPS < groups ? 0 : K % 4;
    for (int t = 0; t < tiles; t++) {
      // Rows past M repeat the last one; their sums are not stored.
      __global const uchar* row[TILE_ROWS];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++)
        row[i] = a + (size_t)min(row0 + t * TILE_ROWS + i, M - 1) * K + 4 * k0;
      add_block(sums + t * TILE_ROWS * TILE_VECTORS, row, panel, steps, tail,
                prefetch_of_tile(panel, STEP_BYTES, steps + (tail != 0), t, tiles), a_signed);
    }
  }
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) + (a_signed ? 128 : 0);
  finish_s8(sums, TILE_VECTORS, rows, row0, column0, zero, column_sums, scale, bias, out_inv_scale,
            out_zero_point, out, N, has_bias, activation, out_type, x_scale, row_sums, w_zero_point,
            row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
