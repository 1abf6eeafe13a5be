// SPDX-License-Identifier: Apache-2.0
// fp32 GEMM for x86: out[M][N] = activation(A[M][K] x B[K][N] + bias).
//
//            N                    B in panels: 16 * VECTORS columns side by side for each k.
//        o-------o                One work-item makes a tile of TILE_ROWS rows x one panel in
//      K |  [B]  |                registers; a step along K is VECTORS loads of B, TILE_ROWS
//        o-------o                broadcasts of A and TILE_ROWS * VECTORS multiply-adds of
//     K      N                    LANES floats.
//   o---o o-------o
// M |[A]| |  [C]  | M             LANES  8 (AVX2, 16 registers):     6 rows x 16 columns
//   o---o o-------o               LANES 16 (AVX-512, 32 registers):  8 rows x 48 columns
//
// Layout: panel width P = 16 (LANES 8) or 48 (LANES 16), K group 1: B[ceil(N/P)][K][P], zeros
// past N.  Tile: 6 or 8 rows.  Grid: (ceil(M/rows), ceil(N/P)), work-group (1,1,1). Arguments:
// see gemm_f32_ref.cl.
#include "persistent/place.clh"
#include "gemm/gemm_f32_x86.clh"
#if LANES == 16 && !defined(BLOCK_TILES)
#define BLOCK_TILES 32  // see tile_order.clh
#endif
#include "gemm/epilogue.clh"
#include "gemm/next_panel.clh"

#ifndef PREFETCH
#define PREFETCH 1  // 1: fetches the next panel early, which Intel's CPUs gain by and AMD's do not
#endif
#ifndef LONG_ROW
// Floats; longer ones are made in two blocks at least (Xeon model 207, 2026-11-22).
#define LONG_ROW 2048
#endif
#ifndef LEAST_TILES_TO_CUT
#define LEAST_TILES_TO_CUT 8  // with 5 it costs 6 % there
#endif

ONE_ITEM KERNEL gemm_f32(GEMM_F32_PARAMETERS(Weight) PLACE_PARAMETER) {
  // Two cores make a block each, and the cache of a core holds long rows of its own block alone.
  // Where rows are short it holds all of them, and one block reads the weights once. Blocks of many
  // tiles are BLOCK_TILES long.
  const int tiles = PLACE.size.x;
  const int most = K > LONG_ROW && tiles >= LEAST_TILES_TO_CUT ? (tiles + 1) / 2 : tiles;
  const Tile at = tile_of_item(PLACE, min(most, BLOCK_TILES));
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILE_COLUMNS;

  // Rows past M repeat the last one; their sums are not stored.
  __global const float* row[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a + (size_t)min(row0 + i, M - 1) * K;
  __global const Weight* panel = b + (size_t)at.panel * K * TILE_COLUMNS;

  Vector c[TILE_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) c[i][j] = (Vector)(0.0f);
  }
  const PanelPrefetch next = next_panel_of(panel, STEP_BYTES, K, at);
  const int fetching = PREFETCH ? min(K, next.steps) : 0;
  if (PREFETCH) add_steps_prefetching(c, row, panel, 0, fetching, next.lines);
  add_steps(c, row, panel, fetching, K, 0, 0);

  // Whole tiles without activation are finished in registers.
  if (row0 + TILE_ROWS <= M && column0 + TILE_COLUMNS <= N && activation == ACTIVATION_NONE) {
    out += (size_t)row0 * N + column0;
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
      const Vector x = has_bias ? LOAD_F32(j, bias + column0) : (Vector)(0.0f);
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++)
        *(__global VectorAny*)(out + (size_t)i * N + j * LANES) = c[i][j] + x;
    }
    return;
  }
  float16 tile[TILE_ROWS * TILE_COLUMNS / 16];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) ((Vector*)tile)[i * VECTORS + j] = c[i][j];
  }
  finish_f32(tile, TILE_COLUMNS / 16, min(TILE_ROWS, M - row0), row0, column0, bias, out, N,
             has_bias, activation);
}

MERGEABLE(gemm_f32, GEMM_F32_ARGUMENTS)
