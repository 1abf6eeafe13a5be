// SPDX-License-Identifier: Apache-2.0
// Product in bf16 for x86 with AVX-512 BF16: out[M][N] = activation(A[M][K] x B[K][N] + bias). A and the
// result are f32; A is rounded to bf16 (half to even) on the way in, sums are f32.
//
//            N                    B: bf16, packed: the two values of one column along K lie together,
//        o-------o                48 columns side by side. One work-item rounds 8 rows of A, BLOCK_K
//      K |  [B]  |                columns at a time, and multiplies them with ITEM_PANELS panels: a
//        o-------o                step along K is 3 loads of B, 8 broadcasts of A and 24 instructions
//     K      N                    of two products a lane.
//   o---o o-------o
// M |[A]| |  [C]  | M             vdpbf16ps takes numbers below 2^-126 for 0 and rounds to nearest
//   o---o o-------o               whatever the mode. Any M, N, K >= 1.
//
// Layout: panel width 48, K group 2: B[ceil(N/48)][ceil(K/2)][48][2], zeros behind N and K.
// Grid: (ceil(M/8), ceil(panels/ITEM_PANELS)), work-group (1,1,1). Arguments: see gemm_f32_ref.cl.
#include "epilogue.clh"
#include "tile_order.clh"

#ifndef ITEM_PANELS
#define ITEM_PANELS 2  // panels of a work-item: each rounding of A serves as many
#endif
#ifndef BLOCK_K
#define BLOCK_K 1024  // columns of A held at a time, a multiple of 32: 16 KiB
#endif
#define TILE_ROWS 8
#define TILE_VECTORS 3
#define TILE_COLUMNS (16 * TILE_VECTORS)

// Inline asm in the kernel, as in gemm_s8_x86_vnni.cl.
#define DOT2(acc, a, b) __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b))
#define TO_BF16(pairs, low, high) \
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(low), "v"(high))

// `count` floats (at most 32) as bf16, zeros behind them.
static __attribute__((always_inline)) int16 round_32(__global const float* from, int count) {
  float16 low, high;
  if (count >= 32) {
    low = vload16(0, from);
    high = vload16(1, from);
  } else {
    low = load_columns_f32(from, 0, min(count, 16));
    high = count > 16 ? load_columns_f32(from, 16, count) : (float16)(0.0f);
  }
  int16 pairs;
  TO_BF16(pairs, low, high);
  return pairs;
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemm_f32(
    __global const float* restrict a, __global const ushort* restrict b,
    __global const float* restrict bias, __global float* restrict out, const int M, const int N,
    const int K, const int has_bias, const int activation) {
  const int2 tile_of = tile_of_item();
  const int row0 = tile_of.x * TILE_ROWS;
  const int panels = (N + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const int first = tile_of.y * ITEM_PANELS, last = min(first + ITEM_PANELS, panels);
  const int all_pairs = (K + 1) / 2;

  int16 rounded[TILE_ROWS][BLOCK_K / 32];
  float16 kept[ITEM_PANELS][TILE_ROWS * TILE_VECTORS];
  for (int k0 = 0; k0 < K; k0 += BLOCK_K) {
    const int columns = min(BLOCK_K, K - k0), pairs = (columns + 1) / 2;
    for (int i = 0; i < TILE_ROWS; i++) {  // rows behind M repeat the last one and are not stored
      __global const float* row = a + (size_t)min(row0 + i, M - 1) * K + k0;
      for (int k = 0; k < columns; k += 32) rounded[i][k / 32] = round_32(row + k, columns - k);
    }
    for (int p = first; p < last; p++) {
      __global const int* panel =
          (__global const int*)b + ((size_t)p * all_pairs + k0 / 2) * TILE_COLUMNS;
      float16 c[TILE_ROWS][TILE_VECTORS];
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < TILE_VECTORS; j++)
          c[i][j] = k0 ? kept[p - first][i * TILE_VECTORS + j] : (float16)(0.0f);
      }
      for (int k = 0; k < pairs; k++, panel += TILE_COLUMNS) {
        const int16 b0 = vload16(0, panel), b1 = vload16(1, panel), b2 = vload16(2, panel);
#pragma unroll
        for (int i = 0; i < TILE_ROWS; i++) {
          const int16 x = (int16)(((const int*)rounded[i])[k]);
          DOT2(c[i][0], x, b0);
          DOT2(c[i][1], x, b1);
          DOT2(c[i][2], x, b2);
        }
      }
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < TILE_VECTORS; j++) kept[p - first][i * TILE_VECTORS + j] = c[i][j];
      }
    }
  }
  for (int p = first; p < last; p++)
    finish_f32(kept[p - first], TILE_VECTORS, min(TILE_ROWS, M - row0), row0, p * TILE_COLUMNS, bias,
               out, N, has_bias, activation);
}
