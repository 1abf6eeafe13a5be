// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al., 2021): each pair of columns of a head, half a head apart,
// is turned by an angle that grows with the place of the row in its sequence.
//
//   out[row][h][d]        = x[row][h][d]        * cosines[place][d]
//                         - x[row][h][d + half] * sines[place][d]              d < half
//   out[row][h][d + half] = x[row][h][d + half] * cosines[place][d + half]
//                         + x[row][h][d]        * sines[place][d + half]
//
//   x, out   [tokens][heads][head_size], half = head_size / 2
//   cosines, sines  [place][head_size]
//   seq_offsets[batch + 1]  first row of each sequence; place = row - that of its sequence
//
// Grid: (ceil(longest sequence / rows_per_item), 1, batch), any local size of one item in z, which
// is never padded. Bounds: head_size is even.
#include "persistent/place.clh"

KERNEL rotary(__global const float* x, __global const float* cosines, __global const float* sines,
              __global float* out, __global const int* seq_offsets, int heads, int head_size,
              int rows_per_item PLACE_PARAMETER) {
  const int begin = seq_offsets[PLACE.id.z], end = seq_offsets[PLACE.id.z + 1];
  const int first = PLACE.id.x * rows_per_item, half_size = head_size / 2;
  for (int place = first; place < min(first + rows_per_item, end - begin); place++) {
    __global const float* c = cosines + (size_t)place * head_size;
    __global const float* s = sines + (size_t)place * head_size;
    for (int head = 0; head < heads; head++) {
      const size_t at = ((size_t)(begin + place) * heads + head) * head_size;
      for (int d = 0; d < half_size; d++) {
        const float low = x[at + d], high = x[at + half_size + d];
        out[at + d] = low * c[d] - high * s[d];
        out[at + half_size + d] = high * c[half_size + d] + low * s[half_size + d];
      }
    }
  }
}

MERGEABLE(rotary, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), POINTER(4), INTEGER(5),
                   INTEGER(6), INTEGER(7), STEP_PLACE))
