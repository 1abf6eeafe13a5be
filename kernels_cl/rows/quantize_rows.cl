// SPDX-License-Identifier: Apache-2.0
// Quantizes rows of a matrix, each with its own scale from its largest magnitude (per-token
// scales).
//
//   scale[m] = max(|x[m][0]|, .., |x[m][hidden - 1]|, least) / 127
//   y[m][i]  = round(x[m][i] / scale[m]) + zero_point, half to even
//
//   x      f32 [rows][hidden]
//   y      [rows][hidden], u8 (zero_point 128) or s8 (0)
//   scale  f32 [rows]; least > 0 keeps rows of zeros finite
//
// Grid: (ceil(rows / rows_per_item)), any local size. Bounds: least / 127 is a normal number.
// Division as in quantize.cl. No unsafe math options.
#include "rows/row.clh"

__kernel void quantize_rows(__global const float* x, __global uchar* y, int y_type,
                            __global float* scale, float least, int rows, int hidden,
                            int rows_per_item) {
  const float zero_point = y_type == TYPE_U8 ? 128.0f : 0.0f;
  const int first = get_global_id(0) * rows_per_item, last = min(first + rows_per_item, rows);
  for (int row = first; row < last; row++) {
    const size_t at = (size_t)row * hidden;
    float16 largest = least;
    for (int i = 0; i < hidden; i += 16)
      largest = fmax(largest, fabs(load_floats16(x, at + i, min(16, hidden - i))));
    const float step = max16(largest) / 127.0f;
    scale[row] = step;
    for (int i = 0; i < hidden; i += 16) {
      const int n = min(16, hidden - i);
      store_quantized16(y, at + i, n, load_floats16(x, at + i, n) / step, y_type, zero_point);
    }
  }
}
