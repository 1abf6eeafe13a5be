// SPDX-License-Identifier: Apache-2.0
// bf16 GEMM for x86 with AVX-512 BF16: out[M][N] = activation(A[M][K] x B[K][N] + bias). A and the
// result are bf16 or f32; A in f32 is rounded to bf16 (half to even) when loaded. Sums are f32.
//
//            N            B: bf16 in panels: the two values of one column along K lie together,
//        o-------o        48 columns side by side. One work-item multiplies 8 rows of A with
//      K |  [B]  |        ITEM_PANELS panels: a step along K is 3 loads of B, 8 broadcasts of A
//        o-------o        and 24 instructions of two products a lane.
//     K      N
//   o---o o-------o       A in bf16 is read as it lies. A in f32 is rounded BLOCK_K columns at a
// M |[A]| |  [C]  | M     time, once for all panels of the work-item.
//   o---o o-------o
//                         Any M, N, K >= 1.
//
// Layout: panel width 48, K group 2: B[ceil(N/48)][ceil(K/2)][48][2], zero-padded past N and K.
// Grid: (ceil(M/8), ceil(panels/ITEM_PANELS)), work-group (1,1,1). Arguments: see gemm_f32_ref.cl;
// then the types of A and of the result, TYPE_F32 or TYPE_BF16.
#ifndef BLOCK_TILES
#define BLOCK_TILES 8  // see tile_order.clh
#endif
#include "persistent/place.clh"
#include "units/bf16_x86.clh"
#include "gemm/tile_order.clh"

#ifndef ITEM_PANELS
#define ITEM_PANELS 1  // panels of a work-item: each rounding of A serves as many
#endif
#ifndef BLOCK_K
#define BLOCK_K 1024  // columns of A held at a time, a multiple of 32: 16 KiB
#endif
#define TILE_ROWS 8
#define TILE_VECTORS 3
#define TILE_COLUMNS (16 * TILE_VECTORS)
#define TILE_INLINE static __attribute__((always_inline))

// A step along K with the words of 8 rows.
#define STEP(word_of_row)                                                                          \
  {                                                                                                \
    const int16 b0 = vload16(0, panel), b1 = vload16(1, panel), b2 = vload16(2, panel);            \
    _Pragma("unroll") for (int i = 0; i < TILE_ROWS; i++) {                                        \
      const int16 x = (int16)(word_of_row);                                                        \
      DOT2(c[i][0], x, b0);                                                                        \
      DOT2(c[i][1], x, b1);                                                                        \
      DOT2(c[i][2], x, b2);                                                                        \
    }                                                                                              \
  }

// `count` floats (at most 32) as bf16, zeros after them.
TILE_INLINE int16 round_32(__global const float* from, int count) {
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

// Whole tiles without activation are finished in registers, all others on the way through memory.
TILE_INLINE void store_tile(float16 c[][TILE_VECTORS], int rows, int row0, int column0,
                            __global const float* bias, __global void* out, int N, int has_bias,
                            int activation, int out_type) {
  if (rows == TILE_ROWS && column0 + TILE_COLUMNS <= N && activation == ACTIVATION_NONE) {
#pragma unroll
    for (int j = 0; j < TILE_VECTORS; j++) {
      const int column = column0 + 16 * j;
      const float16 b = has_bias ? vload16(0, bias + column) : (float16)(0.0f);
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) {
        const size_t at = (size_t)(row0 + i) * N + column;
        if (out_type == TYPE_BF16)
          STORE16(Ushort16Any, to_bf16_v16(c[i][j] + b), (__global ushort*)out + at);
        else
          STORE16(Float16Any, c[i][j] + b, (__global float*)out + at);
      }
    }
    return;
  }
  float16 tile[TILE_ROWS * TILE_VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < TILE_VECTORS; j++) tile[i * TILE_VECTORS + j] = c[i][j];
  }
  if (out_type == TYPE_BF16)
    finish_bf16(tile, TILE_VECTORS, rows, row0, column0, bias, (__global ushort*)out, N, has_bias,
                activation);
  else
    finish_f32(tile, TILE_VECTORS, rows, row0, column0, bias, (__global float*)out, N, has_bias,
               activation);
}

ONE_ITEM KERNEL gemm_bf16(__global const void* restrict a, __global const ushort* restrict b,
                         __global const float* restrict bias, __global void* restrict out,
                         const int M, const int N, const int K, const int has_bias,
                         const int activation, const int a_type,
                         const int out_type PLACE_PARAMETER) {
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, rows = min(TILE_ROWS, M - row0);
  const int panels = (N + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const int first = at.panel * ITEM_PANELS, last = min(first + ITEM_PANELS, panels);
  const int all_pairs = (K + 1) / 2;
  float16 c[TILE_ROWS][TILE_VECTORS];

  if (a_type == TYPE_BF16) {
    __global const ushort* row[TILE_ROWS];  // rows past M repeat the last one and are not stored
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i++)
      row[i] = (__global const ushort*)a + (size_t)min(row0 + i, M - 1) * K;
    for (int p = first; p < last; p++) {
      __global const int* panel = (__global const int*)b + (size_t)p * all_pairs * TILE_COLUMNS;
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) c[i][0] = c[i][1] = c[i][2] = 0.0f;
      for (int k = 0; k < K / 2; k++, panel += TILE_COLUMNS) STEP(as_int(vload2(k, row[i])))
      if (K & 1) STEP(row[i][K - 1])
      store_tile(c, rows, row0, p * TILE_COLUMNS, bias, out, N, has_bias, activation, out_type);
    }
    return;
  }

  int16 rounded[TILE_ROWS][BLOCK_K / 32];
  float16 kept[ITEM_PANELS][TILE_ROWS][TILE_VECTORS];
  for (int k0 = 0; k0 < K; k0 += BLOCK_K) {
    const int columns = min(BLOCK_K, K - k0), pairs = (columns + 1) / 2;
    for (int i = 0; i < TILE_ROWS; i++) {
      __global const float* row = (__global const float*)a + (size_t)min(row0 + i, M - 1) * K + k0;
      for (int k = 0; k < columns; k += 32) rounded[i][k / 32] = round_32(row + k, columns - k);
    }
    for (int p = first; p < last; p++) {
      __global const int* panel =
          (__global const int*)b + ((size_t)p * all_pairs + k0 / 2) * TILE_COLUMNS;
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < TILE_VECTORS; j++)
          c[i][j] = k0 ? kept[p - first][i][j] : (float16)(0.0f);
      }
      for (int k = 0; k < pairs; k++, panel += TILE_COLUMNS) STEP(((const int*)rounded[i])[k])
      if (k0 + BLOCK_K >= K) {
        store_tile(c, rows, row0, p * TILE_COLUMNS, bias, out, N, has_bias, activation, out_type);
        continue;
      }
#pragma unroll
      for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < TILE_VECTORS; j++) kept[p - first][i][j] = c[i][j];
      }
    }
  }
}

MERGEABLE(gemm_bf16, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), INTEGER(5),
                     INTEGER(6), INTEGER(7), INTEGER(8), INTEGER(9), INTEGER(10), STEP_PLACE))
