// SPDX-License-Identifier: Apache-2.0
// Tests sdot by element, with each of the four words that it can take from a (s8, like b):
// out[i] = start[i] + a[4i] b[4i] + ... + a[4i+3] b[4i+3], wrapping. Four of them by a work-item.
#include "units/sdot.clh"

__kernel void probe_sdot(__global const int* a, __global const int* b, __global const int* start,
                         __global int* out) {
  USES_SDOT
  const int i = get_global_id(0);
  const int4 words = vload4(i, a), bytes = vload4(i, b);
  int4 s0 = vload4(i, start), s1 = s0, s2 = s0, s3 = s0;
  DOT4_LANE(s0, bytes, words, 0, 0);
  DOT4_LANE(s1, bytes, words, 0, 1);
  DOT4_LANE(s2, bytes, words, 1, 0);
  DOT4_LANE(s3, bytes, words, 1, 1);
  vstore4((int4)(s0.x, s1.y, s2.z, s3.w), i, out);
}
