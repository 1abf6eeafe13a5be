// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for any device with good fp32 vectors: out[M][N] = epilogue(A[M][K] x B[K][N]).
//
// The products are computed in fp32 and are still exact: a byte times a byte is at most 255 * 128 =
// 32,640, so 512 of them stay below 2^24, up to which floats hold every integer. After each block
// of 512 along K the sums move to int32. Integer multiplies on 32-bit lanes would be slower than
// fp32 on most CPUs.
//
//                 64
//              o-------o            B in panels: 64 columns side by side for each k. One work-item
//          512 |  [B]  | block 0    makes 6 rows x 64 columns as 4 tiles of 16 columns, each in 12
//              |  [B]  | block 1    vectors of 8 floats. The rows of A become floats once per
//   512        o-------o            block, in a private array that the 4 tiles share.
//   o---o---o  o-+-+-+-o
// 6 |[A]|[A]|  | | | | | 4 tiles    Any M, N, K >= 1; K at most 65,793 (int32 sums).
//   o---o---o  o-+-+-+-o
//
// Layout: panel width 64, K group 1: B[ceil(N/64)][K][64], zero-padded past N.  Tile: 6 rows.
// Grid: (ceil(M/6), ceil(N/64)), any work-group size (1 on a CPU).
// Arguments: see gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"

#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define PANEL 64
#define TILES (PANEL / TILE_COLUMNS)
#define BLOCK 512  // along K; more than 514 would break exactness

// Bytes 0 .. count - 1 of a row as floats.
static void widen_f32(__global const uchar* bytes, int is_signed, int count, float8* values) {
  __global const char* chars = (__global const char*)bytes;
  const int whole = count / 8;
  if (is_signed) {
    for (int v = 0; v < whole; v++) values[v] = convert_float8(vload8(v, chars));
  } else {
    for (int v = 0; v < whole; v++) values[v] = convert_float8(vload8(v, bytes));
  }
  float* tail = (float*)(values + whole);
  for (int k = 8 * whole; k < count; k++) *tail++ = is_signed ? chars[k] : bytes[k];
}

KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const int row0 = PLACE.id.x * TILE_ROWS;
  const int column0 = PLACE.id.y * PANEL;
  if (row0 >= M || column0 >= N) return;
  const int tiles = min(TILES, (N - column0 + TILE_COLUMNS - 1) / TILE_COLUMNS);
  __global const char* panel = b + (size_t)PLACE.id.y * K * PANEL;

  int16 sums[TILE_ROWS * TILES];  // [row][tile]
  for (int i = 0; i < TILE_ROWS * TILES; i++) sums[i] = (int16)(0);
  float8 rows_f32[TILE_ROWS][BLOCK / 8];
  for (int k0 = 0; k0 < K; k0 += BLOCK) {
    const int count = min(BLOCK, K - k0);
    // Rows past M repeat the last one; their sums are not stored.
    for (int i = 0; i < TILE_ROWS; i++)
      widen_f32(a + (size_t)min(row0 + i, M - 1) * K + k0, a_signed, count, rows_f32[i]);
    for (int t = 0; t < tiles; t++) {
      __global const char* w = panel + (size_t)k0 * PANEL + t * TILE_COLUMNS;
      float8 c[TILE_ROWS][2];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = (float8)(0.0f);
      for (int k = 0; k < count; k++, w += PANEL) {
        const float8 b0 = convert_float8(vload8(0, w)), b1 = convert_float8(vload8(1, w));
#pragma unroll
        for (int i = 0; i < TILE_ROWS; i++) {
          const float8 x = (float8)(((const float*)rows_f32[i])[k]);
          c[i][0] = fma(x, b0, c[i][0]);
          c[i][1] = fma(x, b1, c[i][1]);
        }
      }
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++)
        sums[i * TILES + t] += (int16)(convert_int8(c[i][0]), convert_int8(c[i][1]));
    }
  }
  finish_s8(sums, TILES, min(TILE_ROWS, M - row0), row0, column0,
            zero_point_of(zero_point, x_zero_point, a_signed), column_sums, scale, bias,
            out_inv_scale, out_zero_point, out, N, has_bias, activation, out_type, x_scale,
            row_sums, w_zero_point, row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
