// SPDX-License-Identifier: Apache-2.0
// Tests whether the instruction of matrix.clh is exact: every sub-group s of one work-group of 256
// makes out[s] = start[s] + A[UNIT_M][K] x B[UNIT_N][K] transposed, 32 bytes along K, which are
// contiguous in both. start, out [256 / UNIT_LANES][UNIT_M][UNIT_N]; A and B in words of four
// bytes.
#ifndef B_PITCH
#define B_PITCH 24  // of B in local memory, in words
#endif
#include "units/matrix.clh"

__attribute__((reqd_work_group_size(256, 1, 1))) UNIT_ATTRIBUTE __kernel void probe_matrix(
    __global const int* a, __global const int* b, __global const UnitSum* start,
    __global UnitSum* out) {
  __local int a_tile[UNIT_M * A_PITCH] __attribute__((aligned(16)));
  __local int b_tile[8 * B_PITCH] __attribute__((aligned(16)));
  MATRIX_EXCHANGE(exchange, 256);
  const int item = get_local_id(0), group = item / UNIT_LANES, lane = item % UNIT_LANES;
  if (item < UNIT_M * 8) a_tile[item / 8 * A_PITCH + item % 8] = a[item];
  if (item < UNIT_N * 8) b_tile[B_PLACE(item % 8, item / 8)] = b[item];
  barrier(CLK_LOCAL_MEM_FENCE);
  UnitA rows[UNIT_STEPS];
  UnitB columns[UNIT_STEPS];
  UnitC c;
  load_unit_a(a_tile, lane, rows);
  load_unit_b(b_tile, lane, columns);
  for (int i = 0; i < UNIT_SUMS; i++)
    ((UnitSum*)&c)[i] =
        start[(group * UNIT_M + UNIT_ROW(lane, i)) * UNIT_N + UNIT_COLUMN(lane, i)];
  for (int s = 0; s < UNIT_STEPS; s++) MATRIX_MULTIPLY(&c, &rows[s], &columns[s], exchange, item);
  for (int i = 0; i < UNIT_SUMS; i++)
    out[(group * UNIT_M + UNIT_ROW(lane, i)) * UNIT_N + UNIT_COLUMN(lane, i)] =
        ((const UnitSum*)&c)[i];
}

// Words of a strip that lanes read: out[lane][0..31] of A, out[lane][32..63] of B, -1 after the
// last; a load of A of several words gives each; out[lane][64] how many these are.
// out[UNIT_LANES][65].
__kernel void matrix_addresses(__global int* out) {
  const int lane = get_global_id(0), words = max((int)sizeof(UNIT_A_LOAD) / 4, 1);
  const int in_word = sizeof(UNIT_A_LOAD) == 2 ? 2 : 1;
  for (int i = 0; i < 32; i++) {
    out[lane * 65 + i] =
        i / words < UNIT_A_LOADS ? UNIT_A_AT(lane, i / words) / in_word + i % words : -1;
    out[lane * 65 + 32 + i] = i < UNIT_B_LOADS ? UNIT_B_AT(lane, i) : -1;
  }
  out[lane * 65 + 64] = words;
}
