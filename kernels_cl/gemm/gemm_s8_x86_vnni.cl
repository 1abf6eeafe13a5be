// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for x86 with AVX-512 VNNI: out[M][N] = epilogue(A[M][K] x B[K][N]). Sums are exact.
//
//            N                    A: u8 or s8, row-major. B: s8 in panels: the four bytes of one
//        o-------o                column along K lie together, 48 columns side by side.
//      K |  [B]  |                One work-item makes a tile of 8 rows x 48 columns in 24
//        o-------o                registers of 16 sums; a step along K is 3 loads of B,
//     K      N                    8 broadcasts of A and 24 dot instructions.
//   o---o o-------o
// M |[A]| |  [C]  | M             Any M, N, K >= 1; K at most 65,793 (int32 sums).
//   o---o o-------o
//
// Layout: panel width 48, K group 4: B[ceil(N/48)][ceil(K/4)][48][4], zero-padded past N and K.
// Grid: (ceil(M/8), ceil(N/48)), work-group (1,1,1). Arguments: see gemm_s8_ref.cl.
#ifndef BLOCK_TILES
#define BLOCK_TILES 8  // see tile_order.clh
#endif
#include "persistent/place.clh"
#include "gemm/epilogue.clh"
#include "gemm/gemm_s8_x86_vnni.clh"
#include "gemm/next_panel.clh"
#include "gemm/epilogue_x86.clh"

ONE_ITEM KERNEL gemm_s8(GEMM_S8_PARAMETERS PLACE_PARAMETER) {
  const Tile at = tile_of_item(PLACE, BLOCK_TILES);
  const int row0 = at.row * TILE_ROWS, column0 = at.panel * TILE_COLUMNS;
  const int rows = min(TILE_ROWS, M - row0);
  const int groups = (K + 3) / 4;

  // Rows past M repeat the last one; their sums are not stored.
  __global const uchar* row[TILE_ROWS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a + (size_t)min(row0 + i, M - 1) * K;
  __global const int* panel =
      (__global const int*)b + (size_t)at.panel * groups * TILE_COLUMNS;

  // s8 becomes u8, which adds 128 to the value and so to the zero point. The sums begin at what the
  // zero point adds to them.
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) + (a_signed ? 128 : 0);
  int16 c[TILE_ROWS][TILE_VECTORS];
#pragma unroll
  for (int j = 0; j < TILE_VECTORS; j++) {
    const int column = column0 + 16 * j;
    c[0][j] = column < N ? -zero * load_columns_s32(column_sums, column, N) : (int16)(0);
#pragma unroll
    for (int i = 1; i < TILE_ROWS; i++) c[i][j] = c[0][j];
  }
  const int whole = K / 4;
  const PanelPrefetch next = next_panel_of(panel, STEP_BYTES, groups, at);
  const int fetching = min(whole, next.steps);
  add_steps_prefetching(c, row, panel, 0, fetching, next.lines, a_signed);
  add_steps_of_sign(c, row, panel, fetching, whole, 0, 0, a_signed);
  if (whole < groups) add_tail(c, row, panel, whole, K, a_signed);

  // With an activation the way through memory costs nothing: its arithmetic hides it.
  if (rows == TILE_ROWS && column0 + TILE_COLUMNS <= N && activation == ACTIVATION_NONE &&
      out_type != TYPE_S32 && !w_zero_point && !row_scale) {
    const float factor = x_scale ? *x_scale : 1.0f;
    if (out_type == TYPE_F32)
      store_tile_floats(c, factor, column0, scale, bias, (__global float*)out + (size_t)row0 * N, N,
                        has_bias);
    else
      store_tile_bytes(c, factor, column0, scale, bias, out_inv_scale, out_zero_point,
                       (__global uchar*)out + (size_t)row0 * N, N, has_bias,
                       out_type == TYPE_S8 ? -128.0f : 0.0f);
    return;
  }
  int16 tile[TILE_ROWS * TILE_VECTORS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < TILE_VECTORS; j++) tile[TILE_VECTORS * i + j] = c[i][j];
  }
  finish_s8(tile, TILE_VECTORS, rows, row0, column0, 0, column_sums, scale, bias, out_inv_scale,
            out_zero_point, out, N, has_bias, activation, out_type, x_scale, row_sums, w_zero_point,
            row_scale);
}

MERGEABLE(gemm_s8, GEMM_S8_ARGUMENTS)
