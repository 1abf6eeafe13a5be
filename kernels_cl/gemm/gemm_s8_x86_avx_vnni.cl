// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for x86 with AVX-VNNI, 256 bits: out[M][N] = epilogue(A[M][K] x B[K][N]). Sums are
// exact.
//
//            N                    A: u8 or s8, row-major. B: s8 in panels: the four bytes of one
//        o-------o                column along K lie together, 16 columns side by side.
//      K |  [B]  |                One work-item makes a tile of 6 rows x 16 columns in 12 of the
//        o-------o                16 registers; a step along K is 2 loads of B, 6 broadcasts of A
//     K      N                    and 12 dot instructions.
//   o---o o-------o
// M |[A]| |  [C]  | M             Any M, N, K >= 1; K at most 65,793 (int32 sums).
//   o---o o-------o
//
// Layout: panel width 16, K group 4: B[ceil(N/16)][ceil(K/4)][16][4], zero-padded past N and K.
// Grid: (ceil(M/6), ceil(N/16)), work-group (1,1,1). Arguments: see gemm_s8_ref.cl.
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/tile_order.clh"
#include "units/vnni.clh"

#ifndef EVEX
// 1: the same instruction as AVX-512 VNNI with VL has it, for tests on such a machine
#define EVEX 0
#endif
#if EVEX
#define DOT4 DOT4_EVEX
#else
#define DOT4 DOT4_VEX
#endif
#define TILE_ROWS 6
#define TILE_COLUMNS 16

#define STEP_ROW(i, word)          \
  {                                \
    const int8 x = (int8)((word)); \
    DOT4(c[i][0], x, b0);          \
    DOT4(c[i][1], x, b1);          \
  }

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILE_COLUMNS;
  const int groups = (K + 3) / 4, whole = K / 4;

  // Rows past M repeat the last one; their sums are not stored.
  __global const uchar* row[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a + (size_t)min(row0 + i, M - 1) * K;
  __global const int* panel = (__global const int*)b + (size_t)at.panel * groups * TILE_COLUMNS;

  int8 c[TILE_ROWS][2];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = (int8)(0);

  // s8 becomes u8 by its top bit, which adds 128 to the value and so to the zero point.
  const int flip = a_signed ? 0x80808080 : 0;
  if (a_signed) {
    for (int k = 0; k < whole; k++, panel += TILE_COLUMNS) {
      const int8 b0 = vload8(0, panel), b1 = vload8(1, panel);
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) STEP_ROW(i, as_int(vload4(k, row[i])) ^ flip)
    }
  } else {  // words go from memory to all lanes without a way through a scalar register
    for (int k = 0; k < whole; k++, panel += TILE_COLUMNS) {
      const int8 b0 = vload8(0, panel), b1 = vload8(1, panel);
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) STEP_ROW(i, as_int(vload4(k, row[i])))
    }
  }
  if (whole < groups) {
    const int8 b0 = vload8(0, panel), b1 = vload8(1, panel);
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++)
      STEP_ROW(i, tail_word(row[i] + 4 * whole, K - 4 * whole) ^ flip)
  }

  int16 tile[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) tile[i] = (int16)(c[i][0], c[i][1]);
  finish_s8(tile, 1, min(TILE_ROWS, M - row0), row0, column0,
            zero_point_of(zero_point, x_zero_point, a_signed) + (a_signed ? 128 : 0), column_sums,
            scale, bias, out_inv_scale, out_zero_point, out, N, has_bias, activation, out_type,
            x_scale, row_sums, w_zero_point, row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
