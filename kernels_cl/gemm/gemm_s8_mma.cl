// SPDX-License-Identifier: Apache-2.0
// int8 GEMM for NVIDIA's matrix units, sm_80 and later: out[M][N] = epilogue(A[M][K] x B[K][N]).
//
// A work-group of 2 x 4 sub-groups, or of 4 x 2, makes a tile. K passes in strips of CELLS_K cells
// of 16 bytes, which cp.async brings to local memory in a ring of STAGES strips, and ldmatrix to
// registers:
//
//                  TILE_N                 strip, of A as of B:
//           o----o----o----o----o
//    TILE_M | s0 | s1 | s2 | s3 |         K 0..15   | row 0 | row 1 | ... | row TILE - 1 | pad |
//           o----o----o----o----o         K 16..31  | row 0 | ...
//           | s4 | s5 | s6 | s7 |
//           o----o----o----o----o         a row, or a column of B, is one cell of 16 bytes
//
// Eight rows of a cell lie in all 32 banks, so ldmatrix meets none twice; the pad spreads the rows
// that cp.async writes side by side. A in u8 is read as s8, its bytes less 128, and so is its zero
// point.
//
// Layout: panel width 64, K group 16: B[ceil(N/64)][ceil(K/16)][64][16], zero-padded past N and K.
// Grid: (ITEMS * ceil(M/TILE_M), ceil(N/TILE_N)), work-group (ITEMS,1,1).
// With PARTIAL: grid (..., ..., splits), the group sums one of the splits of K and stores
// s32 [splits][M][N], which gemm_s8_reduce.cl adds up.
// Arguments: see gemm_s8_ref.cl; a begins at a multiple of 16 bytes. With ACTIVATION and OUT_TYPE
// given, those two are not read: code for all of them is more than an instruction cache holds.
#ifndef TILE_M
#define TILE_M 128  // rows of a work-group, a multiple of 32; with SUBS_N 2 of 64
#endif
#ifndef TILE_N
#define TILE_N 128  // columns of a work-group, a multiple of 64
#endif
#ifndef CELLS_K
#define CELLS_K (TILE_M < 64 ? 4 : 2)
#endif
#ifndef STAGES
#define STAGES (TILE_N > 128 ? 3 : 4)
#endif
#ifndef COPY_ASYNC
#define COPY_ASYNC 1
#endif
#ifndef PARTIAL
#define PARTIAL 0  // 1: gemm_s8_partial, the sums of a split of K
#endif
#ifndef SUBS_N
#define SUBS_N 4  // sub-groups side by side, of 8: 2 or 4
#endif
#define SUB_M (TILE_M / (8 / SUBS_N))
#define SUB_N (TILE_N / SUBS_N)
#define PAD (8 / CELLS_K)
#define A_CELLS (TILE_M + PAD)
#define B_CELLS (TILE_N + PAD)
#define A_AT(row, cell) ((cell)*A_CELLS + (row))
#define B_AT(column, cell) (A_CELLS * CELLS_K + (cell)*B_CELLS + (column))
#define ITEMS 256
#define MATRIX_UNIT 1
#include "gemm/epilogue4.clh"
#include "gemm/gemm_s8_cells.clh"
#include "gemm/parameters.clh"
#include "gemm/steps.clh"
#include "units/matrix.clh"

#define STRIP ((A_CELLS + B_CELLS) * CELLS_K)  // cells
#define SUB_ROWS (SUB_M / UNIT_M)              // fragments of a sub-group
#define SUB_COLUMNS (SUB_N / UNIT_N)
#define LANES_N (SUB_N / 4)  // lanes that finish a row of a sub-group
#define LANES_M (UNIT_LANES / LANES_N)
#define SUMS_PITCH (SUB_N + 4)
#define SUMS_CELLS (UNIT_M * SUMS_PITCH / 4)  // of a sub-group on its way out
#define SPACE (STAGES * STRIP > 8 * SUMS_CELLS ? STAGES * STRIP : 8 * SUMS_CELLS)

// Fragments of 32 bytes along K from the cell of their first row or column on.
static void load_rows(__local const int4* cells, int lane, UnitA* rows) {
#pragma unroll
  for (int i = 0; i < SUB_ROWS; i++) {
#if MATRIX_EMULATED
    load_unit_a((__local const int*)(cells + i * UNIT_M), lane, rows + i);
#else
    LOAD_MATRICES(rows[i], cells + i * UNIT_M + lane / 16 * A_CELLS + lane % 16);
#endif
  }
}

static void load_columns(__local const int4* cells, int lane, UnitB* columns) {
#pragma unroll
  for (int j = 0; j < SUB_COLUMNS; j += 2)
    load_two_units_b(cells + j * UNIT_N, lane, columns + j);
}

#if PARTIAL
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_s8_partial(
    __global const uchar* restrict a, __global const char* restrict b,
    __global int* restrict partials, const int M, const int N, const int K, const int a_signed,
    const int splits) {
#else
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_s8(GEMM_S8_PARAMETERS) {
#endif
  __local int4 space[SPACE];  // strips, then sums
  MATRIX_EXCHANGE(exchange, ITEMS);
  const int item = get_local_id(0), sub = item / UNIT_LANES, lane = item % UNIT_LANES;
  const Operands o = {a,
                      (__global const int4*)b,
                      M,
                      N,
                      K,
                      (int)get_group_id(0) * TILE_M,
                      (int)get_group_id(1) * TILE_N,
                      item};
  const int sub_row = sub / SUBS_N * SUB_M, sub_column = sub % SUBS_N * SUB_N;
  int steps = steps_of(K, 16 * CELLS_K), begin = 0;
#if PARTIAL
  const int split_steps = (steps + splits - 1) / splits, split = get_group_id(2);
  begin = split * split_steps;
  steps = min(steps, begin + split_steps);
#endif
  const int flip = a_signed ? 0 : SIGN_BITS;
  UnitC sums[SUB_ROWS][SUB_COLUMNS];
#pragma unroll
  for (int i = 0; i < SUB_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < SUB_COLUMNS; j++) sums[i][j] = (UnitC)(0);
  }
#pragma unroll
  for (int step = 0; step < STAGES - 1; step++) {
    if (begin + step < steps) fetch(&o, begin + step, space + step * STRIP);
    COPY_COMMIT();
  }
  int stage = 0, next_stage = STAGES - 1;
  for (int step = begin; step < steps; step++) {
    __local const int4* strip = space + stage * STRIP;
    COPY_WAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (step + STAGES - 1 < steps) fetch(&o, step + STAGES - 1, space + next_stage * STRIP);
    COPY_COMMIT();  // a group for each step, also an empty one: COPY_WAIT counts them
#pragma unroll
    for (int c = 0; c < CELLS_K; c += 2) {
      UnitA rows[SUB_ROWS];
      UnitB columns[SUB_COLUMNS];
      load_rows(strip + c * A_CELLS + sub_row, lane, rows);
      load_columns(strip + A_CELLS * CELLS_K + c * B_CELLS + sub_column, lane, columns);
      MATRIX_UNROLL
      for (int i = 0; i < SUB_ROWS; i++) {
        rows[i] ^= flip;
        MATRIX_UNROLL
        for (int j = 0; j < SUB_COLUMNS; j++)
          MATRIX_MULTIPLY(&sums[i][j], &rows[i], &columns[j], exchange, item);
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next_stage = next_stage + 1 == STAGES ? 0 : next_stage + 1;
  }

  // A lane finishes columns 4 (lane % LANES_N) .. of every LANES_M-th row.
  const int column = o.column0 + sub_column + lane % LANES_N * 4;
#if PARTIAL
  partials += (size_t)split * M * N;
#else
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128);
  const Columns4 c = load_columns4(column, N, zero, column_sums, scale, bias, out_inv_scale,
                                   out_zero_point, has_bias, OUT_TYPE, x_scale, w_zero_point);
#endif
  __local int* own = (__local int*)(space + sub * SUMS_CELLS);
  MATRIX_UNROLL
  for (int i = 0; i < SUB_ROWS; i++) {
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int j = 0; j < SUB_COLUMNS; j++) {
#pragma unroll
      for (int s = 0; s < UNIT_SUMS; s++)
        own[UNIT_ROW(lane, s) * SUMS_PITCH + j * UNIT_N + UNIT_COLUMN(lane, s)] =
            ((const int*)&sums[i][j])[s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int r = 0; r < UNIT_M; r += LANES_M) {
      const int row = o.row0 + sub_row + i * UNIT_M + r + lane / LANES_N;
      const int4 s = vload4(0, own + (r + lane / LANES_N) * SUMS_PITCH + lane % LANES_N * 4);
      if (row < M && column < N)
#if PARTIAL
        STORE4(s, partials + (size_t)row * N + column, N - column, int4);
#else
        finish4_s8(s, &c, row, column, N, out, ACTIVATION, OUT_TYPE, row_sums, w_zero_point,
                   row_scale);
#endif
    }
  }
}
