// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for x86 with AVX2: out[M][N] = epilogue(A[M][K] x B[K][N]). Sums are exact.
//
//            N                    A: u8 or s8, row-major. B: s8, packed: the two bytes of one
//        o-------o                column along K lie together, 16 columns side by side.
//      K |  [B]  |                One work-item makes 6 rows x 64 columns as 4 tiles of 16
//        o-------o                columns, each in 12 registers of 8 sums. Both operands are
//     K      N                    widened to 16 bits for pmaddwd, which adds two products into
//   o---o o-------o               32 bits exactly; pmaddubsw would saturate at 16 bits.
// M |[A]| |  [C]  | M
//   o---o o-------o               The rows of A are widened once per block of K into a private
//                                 array, from where the 4 tiles broadcast pairs. Each tile reads
//                                 a panel of its own from front to back.
//
// Layout: panel width 16, K group 2: B[ceil(N/16)][ceil(K/2)][16][2], zero-padded past N and K.
// Tile: 6 rows x 64 columns.  Grid: (ceil(M/6), ceil(N/64)), work-group (1,1,1). Arguments: see
// gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/tile_order.clh"

#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define TILES 4  // side by side, a panel each
#ifndef BLOCK
// Along K, a multiple of 16: 9 KB of widened rows, and 12 KB of weights for each tile. With 512 and
// 256 it is 2 to 4 % slower at K = 768 (EPYC of the Zen 3 generation, 2026-11-24).
#define BLOCK 768
#endif
// Of a widened row. Two more than it needs, so that rows begin in different sets of the cache.
#define ROW_VECTORS (BLOCK / 16 + 2)

typedef short Short16 __attribute__((vector_size(32)));

// Sum of a pair of products for each of 8 columns.
static int8 dot2(int8 a, short16 b) {
  return __builtin_astype(
      __builtin_ia32_pmaddwd256(__builtin_astype(a, Short16), __builtin_astype(b, Short16)), int8);
}

// Bytes 0 .. count - 1 of a row as 16-bit values, with a zero after them where count is odd.
static void widen_s16(__global const uchar* bytes, int is_signed, int count, short16* values) {
  __global const char* chars = (__global const char*)bytes;
  const int whole = count / 16;
  if (is_signed) {
    for (int v = 0; v < whole; v++) values[v] = convert_short16(vload16(v, chars));
  } else {
    for (int v = 0; v < whole; v++) values[v] = convert_short16(vload16(v, bytes));
  }
  short* tail = (short*)(values + whole);
  for (int k = 16 * whole; k < count; k++) *tail++ = is_signed ? chars[k] : bytes[k];
  if (count % 2) *tail = 0;
}

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILES * TILE_COLUMNS;
  const int tiles = min(TILES, (N - column0 + TILE_COLUMNS - 1) / TILE_COLUMNS);
  const size_t panel_bytes = (size_t)((K + 1) / 2) * 2 * TILE_COLUMNS;
  __global const char* panels = b + at.panel * TILES * panel_bytes;

  int16 sums[TILE_ROWS][TILES];
  for (int i = 0; i < TILE_ROWS; i++) {
    for (int t = 0; t < TILES; t++) sums[i][t] = (int16)(0);
  }
  short16 rows_s16[TILE_ROWS][ROW_VECTORS];
  for (int k0 = 0; k0 < K; k0 += BLOCK) {
    const int count = min(BLOCK, K - k0);
    // Rows past M repeat the last one; their sums are not stored.
    for (int i = 0; i < TILE_ROWS; i++)
      widen_s16(a + (size_t)min(row0 + i, M - 1) * K + k0, a_signed, count, rows_s16[i]);
    for (int t = 0; t < tiles; t++) {
      __global const char* w = panels + t * panel_bytes + (size_t)k0 * TILE_COLUMNS;
      int8 c[TILE_ROWS][2];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = (int8)(0);
      for (int k = 0; k < count; k += 2, w += 2 * TILE_COLUMNS) {
        const short16 b0 = convert_short16(vload16(0, w)), b1 = convert_short16(vload16(1, w));
#pragma unroll
        for (int i = 0; i < TILE_ROWS; i++) {
          const int8 pair = (int8)(((const int*)rows_s16[i])[k / 2]);
          c[i][0] += dot2(pair, b0);
          c[i][1] += dot2(pair, b1);
        }
      }
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) sums[i][t] += (int16)(c[i][0], c[i][1]);
    }
  }
  finish_s8((const int16*)sums, TILES, min(TILE_ROWS, M - row0), row0, column0,
            zero_point_of(zero_point, x_zero_point, a_signed), colsum, scale, bias, out_inv_scale,
            out_zero_point, out, N, has_bias, activation, out_type, x_scale, row_sums, w_zero_point,
            row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
