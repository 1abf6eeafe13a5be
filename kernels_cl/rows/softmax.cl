// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax along the last axis: out[row][i] = exp(x[row][i] - max) / sum.
//
//   x, out [rows][size] f32; logarithm 1 gives x - max - log(sum). They may be the same buffer.
//   A row with NaN or inf, or -inf everywhere, gives NaN, as ONNX Runtime's.
//
// Grid: (ceil(rows / rows_per_item)), any local size. Bounds: none. No unsafe math options.
#include "lib/activation.clh"
#include "rows/row.clh"

__kernel void softmax_f32(__global const float* x, __global float* out, int rows, int size,
                          int logarithm, int rows_per_item) {
  const int first = get_global_id(0) * rows_per_item, last = min(first + rows_per_item, rows);
  for (int row = first; row < last; row++) {
    const size_t at = (size_t)row * size;
    float16 highest = -INFINITY;
    for (int i = 0; i < size; i += 16) {
      const int n = min(16, size - i);
      float16 v = load_row16(x, at + i, n, TYPE_F32, 1.0f, 0);
      v = LANE < n ? v : (float16)(-INFINITY);
      highest = v > highest ? v : highest;
    }
    float lanes[16];
    vstore16(highest, 0, lanes);
    float largest = lanes[0];
    for (int t = 1; t < 16; t++) largest = lanes[t] > largest ? lanes[t] : largest;

    float16 sum = 0.0f;
    for (int i = 0; i < size; i += 16) {
      const int n = min(16, size - i);
      float16 e = exp_v16(load_row16(x, at + i, n, TYPE_F32, 1.0f, 0) - largest);
      e = LANE < n ? e : (float16)(0.0f);
      sum += e;
      if (!logarithm) store_row16(out, at + i, n, e);
    }
    const float total = sum16(sum);
    const float factor = 1.0f / total, shift = log(total);
    for (int i = 0; i < size; i += 16) {
      const int n = min(16, size - i);
      const float16 v = load_row16(logarithm ? x : out, at + i, n, TYPE_F32, 1.0f, 0);
      store_row16(out, at + i, n, logarithm ? v - largest - shift : v * factor);
    }
  }
}
