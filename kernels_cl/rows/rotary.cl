// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al., 2021): each pair of columns of a head, half a head apart,
// is turned by an angle that grows with the position of the row in its sequence.
//
//   out[row][h][d]        = x[row][h][d]        * cosines[at][d]
//                         - x[row][h][d + half] * sines[at][d]              d < half
//   out[row][h][d + half] = x[row][h][d + half] * cosines[at][d + half]
//                         + x[row][h][d]        * sines[at][d + half]
//
//   x, out   [tokens][heads][head_size], half = head_size / 2; out is f32, or u8 or s8 by out_type:
//            saturate(round(out * out_inv_scale[column]) + out_zero_point[column]), half to even,
//            for each column of a row; both are null where out is f32
//   cosines, sines  [place][head_size], or [sequence][place][head_size] of table_rows places:
//            at = sequence * table_rows + place; table_rows is 0 where all sequences have one table
//   seq_offsets[batch + 1]  first row of each sequence; place = row - that of its sequence
//
// Grid: (ceil(longest sequence / rows_per_item), 1, batch), any local size of one item in z, which
// is never padded. Bounds: head_size is even.
#include "persistent/place.clh"
#include "rows/row.clh"

static void store_rotated16(__global void* out, size_t at, int column, float16 x, int type,
                            __global const float* inv_scale, __global const float* zero_point) {
  if (type == TYPE_F32)
    store_row16(out, at + column, 16, x);
  else
    store_columns16(out, at, column, 16, x, type, inv_scale, zero_point);
}

// The same of one element, by the steps of store_quantized16.
static void store_rotated(__global void* out, size_t at, int column, float x, int type,
                         __global const float* inv_scale, __global const float* zero_point) {
  if (type == TYPE_F32) {
    ((__global float*)out)[at + column] = x;
    return;
  }
  const float zero = zero_point[column], low = (type == TYPE_U8 ? 0.0f : -128.0f) - zero;
  x *= inv_scale[column];
  x = x > low ? x : low;
  x = x < low + 255.0f ? x : low + 255.0f;
  ((__global uchar*)out)[at + column] = as_int((x + 12582912.0f) + zero) & 255;
}

KERNEL rotary(__global const float* x, __global const float* cosines, __global const float* sines,
              __global void* out, int out_type, __global const float* out_inv_scale,
              __global const float* out_zero_point,
              __global const int* seq_offsets, int heads, int head_size, int table_rows,
              int rows_per_item PLACE_PARAMETER) {
  const int begin = seq_offsets[PLACE.id.z], end = seq_offsets[PLACE.id.z + 1];
  const size_t table = (size_t)PLACE.id.z * table_rows;
  const int first = PLACE.id.x * rows_per_item, half_size = head_size / 2;
  for (int place = first; place < min(first + rows_per_item, end - begin); place++) {
    __global const float* c = cosines + (table + place) * head_size;
    __global const float* s = sines + (table + place) * head_size;
    const size_t row = (size_t)(begin + place) * heads * head_size;
    for (int head = 0; head < heads; head++) {
      const int column = head * head_size;
      const size_t at = row + column;
      int d = 0;
      for (; d + 16 <= half_size; d += 16) {
        const int e = half_size + d;
        const float16 low = load_floats16(x, at + d, 16), high = load_floats16(x, at + e, 16);
        store_rotated16(out, row, column + d,
                        low * load_floats16(c, d, 16) - high * load_floats16(s, d, 16), out_type,
                        out_inv_scale, out_zero_point);
        store_rotated16(out, row, column + e,
                        high * load_floats16(c, e, 16) + low * load_floats16(s, e, 16), out_type,
                        out_inv_scale, out_zero_point);
      }
      for (; d < half_size; d++) {
        const int e = half_size + d;
        const float low = x[at + d], high = x[at + e];
        store_rotated(out, row, column + d, low * c[d] - high * s[d], out_type, out_inv_scale,
                      out_zero_point);
        store_rotated(out, row, column + e, high * c[e] + low * s[e], out_type, out_inv_scale,
                      out_zero_point);
      }
    }
  }
}

MERGEABLE(rotary, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), POINTER(5),
                   POINTER(6), POINTER(7), INTEGER(8), INTEGER(9), INTEGER(10),
                   INTEGER(11), STEP_PLACE))
