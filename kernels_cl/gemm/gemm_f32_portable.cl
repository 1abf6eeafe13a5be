// SPDX-License-Identifier: Apache-2.0
// fp32 GEMM for any device with fp32 vectors: out[M][N] = activation(A[M][K] x B[K][N] + bias).
//
//            N                    B in panels: 16 columns side by side for each k. One work-item
//        o-------o                makes a tile of 6 rows x 16 columns in 12 vectors of 8; a step
//      K |  [B]  |                along K is 2 loads of B, 6 broadcasts of A and 12 multiply-adds.
//        o-------o                With one vector of A and two of B that fits the 16 registers of
//     K      N                    a CPU with 256-bit vectors.
//   o---o o-------o
// M |[A]| |  [C]  | M             Any M, N, K >= 1.
//   o---o o-------o
//
// Layout: panel width 16, K group 1: B[ceil(N/16)][K][16], zero-padded past N.  Tile: 6 rows.
// Grid: (ceil(M/6), ceil(N/16)), any work-group size (1 on a CPU).
// Arguments: see gemm_f32_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/weights.clh"

#define TILE_ROWS 6
#define TILE_COLUMNS 16

KERNEL gemm_f32(GEMM_F32_PARAMETERS(Weight) PLACE_PARAMETER) {
  const int row0 = PLACE.id.x * TILE_ROWS;
  const int column0 = PLACE.id.y * TILE_COLUMNS;
  if (row0 >= M || column0 >= N) return;

  // Rows past M repeat the last one; their sums are not stored.
  __global const float* row[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a + (size_t)min(row0 + i, M - 1) * K;
  __global const Weight* panel = b + (size_t)PLACE.id.y * K * TILE_COLUMNS;

  float8 c[TILE_ROWS][2];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = (float8)(0.0f);
  for (int k = 0; k < K; k++, panel += TILE_COLUMNS) {
    const float8 b0 = LOAD_WEIGHTS8(0, panel), b1 = LOAD_WEIGHTS8(1, panel);
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++) {
      const float8 x = (float8)(row[i][k]);
      c[i][0] = fma(x, b0, c[i][0]);
      c[i][1] = fma(x, b1, c[i][1]);
    }
  }

  float16 tile[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) tile[i] = (float16)(c[i][0], c[i][1]);
  finish_f32(tile, 1, min(TILE_ROWS, M - row0), row0, column0, bias, out, N, has_bias, activation);
}

MERGEABLE(gemm_f32, GEMM_F32_ARGUMENTS)
