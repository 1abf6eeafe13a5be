// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al., 2021): each pair of columns of a head, half a head apart,
// is turned by an angle that grows with the place of the row in its sequence.
//
//   out[row][h][d]        = x[row][h][d]        * cosines[place][d]
//                         - x[row][h][d + half] * sines[place][d]              d < half
//   out[row][h][d + half] = x[row][h][d + half] * cosines[place][d + half]
//                         + x[row][h][d]        * sines[place][d + half]
//
//   x, out   [tokens][heads][head_size], half = head_size / 2; out is f32, or u8 or s8 by out_type:
//            saturate(round(out * out_inv_scale) + out_zero_point), half to even
//   cosines, sines  [place][head_size]
//   seq_offsets[batch + 1]  first row of each sequence; place = row - that of its sequence
//
// Grid: (ceil(longest sequence / rows_per_item), 1, batch), any local size of one item in z, which
// is never padded. Bounds: head_size is even.
#include "persistent/place.clh"
#include "rows/row.clh"

// Elements at .. at + n - 1, n <= 16.
static void store_turned16(__global void* out, size_t at, int n, float16 x, int type,
                           float inv_scale, int zero_point) {
  if (type == TYPE_F32)
    store_row16(out, at, n, x);
  else
    store_quantized16(out, at, n, x * inv_scale, type, zero_point);
}

KERNEL rotary(__global const float* x, __global const float* cosines, __global const float* sines,
              __global void* out, int out_type, float out_inv_scale, int out_zero_point,
              __global const int* seq_offsets, int heads, int head_size,
              int rows_per_item PLACE_PARAMETER) {
  const int begin = seq_offsets[PLACE.id.z], end = seq_offsets[PLACE.id.z + 1];
  const int first = PLACE.id.x * rows_per_item, half_size = head_size / 2;
  for (int place = first; place < min(first + rows_per_item, end - begin); place++) {
    __global const float* c = cosines + (size_t)place * head_size;
    __global const float* s = sines + (size_t)place * head_size;
    for (int head = 0; head < heads; head++) {
      const size_t at = ((size_t)(begin + place) * heads + head) * head_size;
      for (int d = 0; d < half_size; d += 16) {
        const int n = min(16, half_size - d), e = half_size + d;
        const float16 low = load_floats16(x, at + d, n), high = load_floats16(x, at + e, n);
        const float16 c_low = load_floats16(c, d, n), c_high = load_floats16(c, e, n);
        const float16 s_low = load_floats16(s, d, n), s_high = load_floats16(s, e, n);
        store_turned16(out, at + d, n, low * c_low - high * s_low, out_type, out_inv_scale,
                       out_zero_point);
        store_turned16(out, at + e, n, high * c_high + low * s_high, out_type, out_inv_scale,
                       out_zero_point);
      }
    }
  }
}

MERGEABLE(rotary, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), FLOAT(5),
                   INTEGER(6), POINTER(7), INTEGER(8), INTEGER(9), INTEGER(10), STEP_PLACE))
