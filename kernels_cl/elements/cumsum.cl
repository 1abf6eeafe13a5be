// SPDX-License-Identifier: Apache-2.0
// CumSum of ONNX along the middle of a view: out[o][r][i] = sum over s <= r of x[o][s][i].
//
//   x, out [outer][size][inner]; cumsum_f32, cumsum_i32, cumsum_i64
//   exclusive 1: s < r. reverse 1: from the end (s >= r, or s > r).
//
// Grid: (ceil(outer * inner / chunk)), any local size; each work-item takes `chunk` lines in turn.
// Bounds: outer * inner < 2^31.

#define CUMSUM(NAME, TYPE)                                                                        \
  __kernel void cumsum_##NAME(__global const TYPE* x, __global TYPE* out, int outer, int size,    \
                              int inner, int exclusive, int reverse, int chunk) {                 \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, outer * inner);         \
    for (int line = first; line < last; line++) {                                                 \
      const size_t at = (size_t)(line / inner) * size * inner + line % inner;                     \
      TYPE sum = 0;                                                                               \
      for (int s = 0; s < size; s++) {                                                            \
        const size_t i = at + (size_t)(reverse ? size - 1 - s : s) * inner;                       \
        const TYPE before = sum;                                                                  \
        sum += x[i];                                                                              \
        out[i] = exclusive ? before : sum;                                                        \
      }                                                                                           \
    }                                                                                             \
  }

CUMSUM(f32, float)
CUMSUM(i32, int)
CUMSUM(i64, long)
