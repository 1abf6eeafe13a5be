// SPDX-License-Identifier: Apache-2.0
// int8 product for GPUs with matrix units: out[M][N] = epilogue(A[M][K] x B[K][N]), by mma.clh.
//
//                 128 columns        256 work-items are 8 warps of 32, 2 along M by 4 along N. A warp
//              o----o----o----o----o makes 64 x 32 outputs: 4 x 4 products of 16 x 8. Per step of 32
//     K_WORDS  | w0 | w1 | w2 | w3 | bytes along K the work-group copies a strip of both operands to
//              o----o----o----o----o local memory; the strips are double, so one barrier a step is
//    K_WORDS                         enough. Fragments are ordinary loads from there, and the pitches
//   o-----o    o----o----o----o----o put the 32 words of one load into 32 banks.
//   |     |    |  0 |  1 |  2 |  3 |
//   |     |    o----o----o----o----o At the end the sums go through local memory, 16 rows of a warp at
//   |     |    |  4 |  5 |  6 |  7 | a time, so that a work-item has four columns of a row and
//   o-----o    o----o----o----o----o neighbours store to neighbouring addresses.
//
// A in u8 is read as s8, its bytes less 128, and so is its zero point.
//
// Layout: panel width 64, K group 4: B[ceil(N/64)][ceil(K/4)][64][4], zeros behind N and K.
// Tile: 128 rows.  Grid: (256, ceil(M/128), ceil(N/128)), work-group (256,1,1).
// Arguments: see gemm_s8_ref.cl; a begins at a multiple of 16 bytes.
#include "epilogue4.clh"
#include "gemm_s8_copy.clh"
#include "mma.clh"

#define ITEMS 256
#define TILE_M 128
#define TILE_N 128
#define K_WORDS 8  // four-byte words along K of one step: what one instruction takes
#define A_PITCH (K_WORDS + 4)
#define B_PITCH (TILE_N + 8)
#define A_SIZE (TILE_M * A_PITCH)
#define B_SIZE (K_WORDS * B_PITCH)
#define SUMS_PITCH (32 + 4)  // of the 16 x 32 sums of a warp on their way out

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_s8(
    __global const uchar* restrict a, __global const char* restrict b,
    __global const int* restrict colsum, __global const float* restrict scale,
    __global const float* restrict bias, __global const float* restrict out_inv_scale,
    __global const float* restrict out_zero_point, __global void* restrict out, const int M,
    const int N, const int K, const int zero_point, const int a_signed, const int has_bias,
    const int activation, const int out_type, __global const float* restrict x_scale,
    __global const uchar* restrict x_zero_point, __global const int* restrict row_sums,
    __global const int* restrict w_zero_point, __global const float* restrict row_scale) {
  __local int space[2 * (A_SIZE + B_SIZE)] __attribute__((aligned(16)));  // 21 KB; then the sums
  MMA_EXCHANGE(exchange, ITEMS / 32);
  const int item = get_local_id(0), warp = item / 32, lane = item % 32, g = lane / 4, t = lane % 4;
  const int row0 = (int)get_group_id(1) * TILE_M, column0 = (int)get_group_id(2) * TILE_N;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  const int groups = (K + 3) / 4;
  const int flip = a_signed ? 0 : SIGN_BITS;

  // What this work-item copies: four words of a row, four columns of a group.
  const int a_row = item / 2, a_word = item % 2 * 4, b_group = item / 32, b_column = item % 32 * 4;
  __global const uchar* from_a = a + (size_t)min(row0 + a_row, M - 1) * K;
  __global const int* words_b = (__global const int*)b;

  int4 sums[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) sums[i][j] = (int4)(0);
  }
  int next_a[4], next_b[4];
  load_a(from_a, 4 * a_word, K, flip, 4, next_a);
  load_b(words_b, column0 + b_column, N, b_group, groups, 4, next_b);
  for (int k = 0, half_index = 0; k < groups; k += K_WORDS, half_index ^= 1) {
    __local int* a_tile = space + half_index * (A_SIZE + B_SIZE);
    __local int* b_tile = a_tile + A_SIZE;
    *(__local int4*)(a_tile + a_row * A_PITCH + a_word) =
        (int4)(next_a[0], next_a[1], next_a[2], next_a[3]);
    *(__local int4*)(b_tile + b_group * B_PITCH + b_column) =
        (int4)(next_b[0], next_b[1], next_b[2], next_b[3]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (k + K_WORDS < groups) {
      load_a(from_a, 4 * (k + K_WORDS + a_word), K, flip, 4, next_a);
      load_b(words_b, column0 + b_column, N, k + K_WORDS + b_group, groups, 4, next_b);
    }
    int4 rows[4];
    int2 columns[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      __local const int* from = a_tile + (warp_row + i * 16 + g) * A_PITCH + t;
      rows[i] = (int4)(from[0], from[8 * A_PITCH], from[4], from[8 * A_PITCH + 4]);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      __local const int* from = b_tile + t * B_PITCH + warp_column + j * 8 + g;
      columns[j] = (int2)(from[0], from[4 * B_PITCH]);
    }
#if MMA_PTX  // the twin has barriers: sixteen times two of them take seconds to compile
#pragma unroll
#endif
    for (int i = 0; i < 4; i++) {
#if MMA_PTX
#pragma unroll
#endif
      for (int j = 0; j < 4; j++) MMA(sums[i][j], rows[i], columns[j], exchange, item);
    }
  }

  // Work-item `lane` finishes columns 4 (lane % 8) .. of rows lane / 8, + 4, + 8, + 12.
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128);
  const int column = column0 + warp_column + lane % 8 * 4;
  const Columns4 c = load_columns4(column, N, zero, colsum, scale, bias, out_inv_scale,
                                   out_zero_point, has_bias, out_type, x_scale, w_zero_point);
  __local int* own = space + warp * 16 * SUMS_PITCH;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      vstore2(sums[i][j].lo, 0, own + g * SUMS_PITCH + j * 8 + 2 * t);
      vstore2(sums[i][j].hi, 0, own + (g + 8) * SUMS_PITCH + j * 8 + 2 * t);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < 16; r += 4) {
      const int row = row0 + warp_row + i * 16 + r + lane / 8;
      const int4 s = vload4(0, own + (r + lane / 8) * SUMS_PITCH + lane % 8 * 4);
      if (row < M && column < N)
        finish4_s8(s, &c, row, column, N, out, activation, out_type, row_sums, w_zero_point,
                   row_scale);
    }
  }
}
