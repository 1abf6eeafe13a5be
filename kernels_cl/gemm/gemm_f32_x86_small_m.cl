// SPDX-License-Identifier: Apache-2.0
// Small-M fp32 GEMM for x86: out[M][N] = activation(A[M][K] x B[K][N] + bias), bound by loading the
// weights from memory.
//
//             N                    B in panels as for gemm_f32_x86.cl. One work-item makes
//         o-------o                ITEM_TILES tiles of rows x one panel; all go BLOCK_STEPS along K
//       K |  [B]  |  block 0       before any goes further, and fetch the next block meanwhile
//         |  [B]  |  block 1       (prefetch.clh). Between blocks the sums lie in private memory.
//      K  o-------o
//    o---o o-----o
//    |[A]| | [C] | tile 0
//    |[A]| | [C] | tile 1
//    o---o o-----o
//
// Layout: panel width P = 16 (LANES 8) or 48 (LANES 16), K group 1: B[ceil(N/P)][K][P], zeros
// past N.  Tile: 6 or 8 rows.  Grid: (ceil(M/(ITEM_TILES * rows)), ceil(N/P)), work-group (1,1,1).
// Arguments: see gemm_f32_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/gemm_f32_x86.clh"

#ifndef ITEM_TILES
#define ITEM_TILES 4  // tiles of rows of a work-item
#endif

// `steps` steps of a tile, whose sums lie in memory between blocks.
static void add_block(Vector* sums, __global const float* const* row, __global const Weight* panel,
                      int steps, Prefetch prefetch) {
  Vector c[TILE_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) c[i][j] = sums[i * VECTORS + j];
  }
  add_steps_prefetching(c, row, panel, 0, steps, prefetch);
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) sums[i * VECTORS + j] = c[i][j];
  }
}

ONE_ITEM KERNEL gemm_f32(GEMM_F32_PARAMETERS(Weight) PLACE_PARAMETER) {
  const int row0 = PLACE.id.x * ITEM_TILES * TILE_ROWS;
  const int rows = min(ITEM_TILES * TILE_ROWS, M - row0),
            tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
  const int panel = PLACE.id.y;
  __global const Weight* weights = b + (size_t)panel * K * TILE_COLUMNS;

  float16 sums[ITEM_TILES * TILE_ROWS * TILE_COLUMNS / 16];
  for (int i = 0; i < tiles * TILE_ROWS * TILE_COLUMNS / 16; i++) sums[i] = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BLOCK_STEPS, weights += BLOCK_STEPS * TILE_COLUMNS) {
    const int steps = min(BLOCK_STEPS, K - k0);
    for (int t = 0; t < tiles; t++) {
      // Rows past M repeat the last one; their sums are not stored.
      __global const float* row[TILE_ROWS];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++)
        row[i] = a + (size_t)min(row0 + t * TILE_ROWS + i, M - 1) * K + k0;
      add_block((Vector*)sums + t * TILE_ROWS * VECTORS, row, weights, steps,
                prefetch_of_tile(weights, STEP_BYTES, steps, t, tiles));
    }
  }
  finish_f32(sums, TILE_COLUMNS / 16, rows, row0, panel * TILE_COLUMNS, bias, out, N,
             has_bias, activation);
}

MERGEABLE(gemm_f32, GEMM_F32_ARGUMENTS)
