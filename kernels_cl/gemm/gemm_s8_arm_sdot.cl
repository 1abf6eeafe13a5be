// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for 64-bit Arm with sdot: out[M][N] = epilogue(A[M][K] x B[K][N]). Sums are
// exact.
//
//            N                    A: u8 or s8, row-major. B: s8 in panels: the four bytes of one
//        o-------o                column along K lie together, 16 columns side by side.
//      K |  [B]  |                One work-item makes a tile of 6 rows x 16 columns in 24 of the
//        o-------o                32 registers. A block of 16 along K is 6 loads of A, whose words
//     K      N                    are lanes of the instruction, 16 loads of B and 96 dot
//   o---o o-------o               instructions.
// M |[A]| |  [C]  | M
//   o---o o-------o               Any M, N, K >= 1; K at most 65,793 (int32 sums).
//
// Layout: panel width 16, K group 4: B[ceil(N/16)][ceil(K/4)][16][4], zero-padded past N and K.
// Grid: (ceil(M/6), ceil(N/16)), work-group (1,1,1). Arguments: see gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/tile_order.clh"
#include "lib/word.clh"
#include "units/sdot.clh"

#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define VECTORS (TILE_COLUMNS / 4)
#define SIGN_BITS ((int)0x80808080)

typedef int4 __attribute__((aligned(1), may_alias)) Int4Any;

// One group of four along K: the words of A are lanes 2 * HIGH + LOW of x[row].
#define STEP(HIGH, LOW)                                        \
  _Pragma("unroll") for (int j = 0; j < VECTORS; j++) {        \
    const int4 w = *(__global const Int4Any*)(panel + 4 * j);  \
    _Pragma("unroll") for (int i = 0; i < TILE_ROWS; i++)      \
      DOT4_LANE(c[i][j], w, x[i], HIGH, LOW);                  \
  }                                                            \
  panel += TILE_COLUMNS;

// One block of 16 along K. FLIP is a constant: in a register, it would spill another.
#define BLOCK(FLIP)                                                                                \
  int4 x[TILE_ROWS];                                                                               \
  _Pragma("unroll") for (int i = 0; i < TILE_ROWS; i++)                                            \
    x[i] = *(__global const Int4Any*)(row[i] + k) ^ (FLIP);                                        \
  STEP(0, 0)                                                                                       \
  STEP(0, 1)                                                                                       \
  STEP(1, 0)                                                                                       \
  STEP(1, 1)

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  USES_SDOT
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILE_COLUMNS;
  const int groups = (K + 3) / 4;

  // Rows past M repeat the last one; their sums are not stored.
  __global const uchar* row[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a + (size_t)min(row0 + i, M - 1) * K;
  __global const int* panel = (__global const int*)b + (size_t)at.panel * groups * TILE_COLUMNS;

  int4 c[TILE_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++)
#pragma unroll
    for (int j = 0; j < VECTORS; j++) c[i][j] = (int4)(0);

  // u8 becomes s8 by its top bit, which subtracts 128 from the value and so from the zero point.
  const int flip = a_signed ? 0 : SIGN_BITS;
  int k = 0;
  if (a_signed) {
    for (; k + 16 <= K; k += 16) { BLOCK(0) }
  } else {
    for (; k + 16 <= K; k += 16) { BLOCK(SIGN_BITS) }
  }
  for (; k < K; k += 4) {
    int4 x[TILE_ROWS];
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++) x[i] = word_at(row[i] + k, K - k) ^ flip;
    STEP(0, 0)
  }

  int16 tile[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) tile[i] = (int16)(c[i][0], c[i][1], c[i][2], c[i][3]);
  finish_s8(tile, 1, min(TILE_ROWS, M - row0), row0, column0,
            zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128), column_sums,
            scale, bias, out_inv_scale, out_zero_point, out, N, has_bias, activation, out_type,
            x_scale, row_sums, w_zero_point, row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
