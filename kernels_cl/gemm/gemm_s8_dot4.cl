// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for GPUs: out[M][N] = epilogue(A[M][K] x B[K][N]), with four-byte dot products.
//
//                 TILE_N             256 work-items make TILE_M x TILE_N outputs. Per step of 32
//              o----------o          bytes along K they copy a strip of both operands to local
//    K_WORDS   |  b_tile  |          memory, A transposed, so that a work-item reads its rows, and
//              o----------o          four columns, as vectors. The strips are double: while one
//   K_WORDS                          is multiplied, the next is on its way in registers, and one
//   o------o   o----------o          barrier a step is enough.
//   |      |   | o o   o o| <- 4 columns and, where TILE_N is 128, 4 more, 64 columns farther
//   |a_tile|   | o o   o o|
//   |      |   |          |          Work-item (tx, ty) of 16 x 16: rows ty * ROWS + ..., columns
//   o------o   o----------o          tx * 4 + ... of each 64.
//
// u8 bytes of A and its zero point are read as s8 by subtracting 128: one instruction for both.
//
// Layout: panel width 64, K group 4: B[ceil(N/64)][ceil(K/4)][64][4], zero-padded past N and K.
// Tile: TILE_M rows.  Grid: (256 * ceil(M/TILE_M), ceil(N/TILE_N)), work-group (256,1,1).
// Arguments: see gemm_s8_ref.cl; a begins at a multiple of 16 bytes. With ACTIVATION and OUT_TYPE
// given, those two are not read: code for all of them is most of the kernel.
#include "units/dot4.clh"
#include "gemm/epilogue4.clh"
#include "gemm/gemm_s8_copy.clh"
#include "gemm/parameters.clh"
#include "lib/narrow.clh"

#ifndef TILE_M
#define TILE_M 128  // 32, 64 or 128: rows of a work-group
#endif
#ifndef TILE_N
#define TILE_N 128  // 64 or 128: columns of a work-group
#endif
#define ITEMS 256
#define K_WORDS 8                          // four-byte words along K of one step
#define ROWS (TILE_M / 16)                 // of a work-item
#define VECTORS (TILE_N / PANEL)           // of four columns, of a work-item
#define A_WORDS (TILE_M * K_WORDS / ITEMS)  // copied by a work-item in a step
#define B_WORDS (TILE_N * K_WORDS / ITEMS)
#define A_PITCH (TILE_M + 4)  // the stores of a half-warp fall into different banks

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW __kernel void gemm_s8(
    GEMM_S8_PARAMETERS) {
  __local int a_tile[2][K_WORDS][A_PITCH] __attribute__((aligned(16)));
  __local int b_tile[2][K_WORDS][TILE_N] __attribute__((aligned(16)));
  const int item = get_local_id(0), tx = item % 16, ty = item / 16;
  const int row0 = (int)get_group_id(0) * TILE_M, column0 = (int)get_group_id(1) * TILE_N;
  const int groups = (K + 3) / 4;
  const int flip = a_signed ? 0 : SIGN_BITS;

  // What this work-item copies: A_WORDS words of a row, B_WORDS columns of a group.
  const int a_row = item / (K_WORDS / A_WORDS), a_word = item % (K_WORDS / A_WORDS) * A_WORDS;
  const int b_group = item / (TILE_N / B_WORDS), b_column = item % (TILE_N / B_WORDS) * B_WORDS;
  __global const uchar* from_a = a + (size_t)min(row0 + a_row, M - 1) * K;
  __global const int* words_b = (__global const int*)b;

  int4 sums[ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) sums[i][j] = (int4)(0);
  }
  int next_a[A_WORDS], next_b[B_WORDS];
  load_a(from_a, 4 * a_word, K, A_WORDS, next_a);
  load_b(words_b, column0 + b_column, N, b_group, groups, B_WORDS, next_b);
  // At least one step: see steps.clh.
  for (int g = 0, half_index = 0; g < max(groups, 1); g += K_WORDS, half_index ^= 1) {
#pragma unroll
    for (int w = 0; w < A_WORDS; w++) a_tile[half_index][a_word + w][a_row] = next_a[w] ^ flip;
#pragma unroll
    for (int w = 0; w < B_WORDS; w++) b_tile[half_index][b_group][b_column + w] = next_b[w];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (g + K_WORDS < groups) {
      load_a(from_a, 4 * (g + K_WORDS + a_word), K, A_WORDS, next_a);
      load_b(words_b, column0 + b_column, N, g + K_WORDS + b_group, groups, B_WORDS, next_b);
    }
#pragma unroll
    for (int k = 0; k < K_WORDS; k++) {
      int rows[ROWS];
      int4 columns[VECTORS];
#pragma unroll
      for (int i = 0; i < ROWS; i++) rows[i] = a_tile[half_index][k][ty * ROWS + i];
#pragma unroll
      for (int j = 0; j < VECTORS; j++)
        columns[j] = *(__local const int4*)&b_tile[half_index][k][j * PANEL + tx * 4];
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < VECTORS; j++) {
          sums[i][j].s0 = dot4_ss(rows[i], columns[j].s0, sums[i][j].s0);
          sums[i][j].s1 = dot4_ss(rows[i], columns[j].s1, sums[i][j].s1);
          sums[i][j].s2 = dot4_ss(rows[i], columns[j].s2, sums[i][j].s2);
          sums[i][j].s3 = dot4_ss(rows[i], columns[j].s3, sums[i][j].s3);
        }
      }
    }
  }

  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128);
#pragma unroll
  for (int j = 0; j < VECTORS; j++) {
    const int column = column0 + j * PANEL + tx * 4;
    if (column >= N) continue;
    const Columns4 c = load_columns4(column, N, zero, column_sums, scale, bias, out_inv_scale,
                                     out_zero_point, has_bias, OUT_TYPE, x_scale, w_zero_point);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const int row = row0 + ty * ROWS + i;
      if (row < M)
        finish4_s8(sums[i][j], &c, row, column, N, out, ACTIVATION, OUT_TYPE, row_sums,
                   w_zero_point, row_scale);
    }
  }
}
