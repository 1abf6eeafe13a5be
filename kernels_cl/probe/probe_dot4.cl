// SPDX-License-Identifier: Apache-2.0
// Shows whether a back end of dot4.clh is exact: one work-item per lane, three sign mixes.
//
//   lane i: four bytes of a, four bytes of b, start[i]  ->  out[0][i] s8.s8, out[1][i] u8.s8,
//   out[2][i] u8.u8, each start[i] + sum of the four products, wrapping
//
// DOT4: the back end.
#include "units/dot4.clh"

#define LANES 16

__kernel void probe_dot4(__global const int* a, __global const int* b, __global const int* start,
                         __global int* out) {
  const int i = get_global_id(0);
  out[i] = dot4_ss(a[i], b[i], start[i]);
  out[LANES + i] = dot4_us(a[i], b[i], start[i]);
  out[2 * LANES + i] = dot4_uu(a[i], b[i], start[i]);
}
