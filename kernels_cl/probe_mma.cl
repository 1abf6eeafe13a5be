// SPDX-License-Identifier: Apache-2.0
// Shows whether the matrix instruction of mma.clh is exact: C[16][8] = start[16][8] + A[16][32] x
// B[32][8], A row-major, B as [8][32] (K contiguous for each column). One work-group of 32.
#include "mma.clh"

__attribute__((reqd_work_group_size(32, 1, 1)))
__kernel void probe_mma(__global const int* a, __global const int* b, __global const int* start,
                        __global int* out) {
  MMA_EXCHANGE(exchange, 1);
  const int lane = get_local_id(0), g = lane / 4, t = lane % 4;
  const int4 rows = (int4)(a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + 4 + t],
                           a[(g + 8) * 8 + 4 + t]);
  const int2 columns = (int2)(b[g * 8 + t], b[g * 8 + 4 + t]);
  int4 c = (int4)(start[g * 8 + 2 * t], start[g * 8 + 2 * t + 1], start[(g + 8) * 8 + 2 * t],
                  start[(g + 8) * 8 + 2 * t + 1]);
  MMA(c, rows, columns, exchange, lane);
  out[g * 8 + 2 * t] = c.s0;
  out[g * 8 + 2 * t + 1] = c.s1;
  out[(g + 8) * 8 + 2 * t] = c.s2;
  out[(g + 8) * 8 + 2 * t + 1] = c.s3;
}
