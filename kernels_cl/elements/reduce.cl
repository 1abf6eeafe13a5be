// SPDX-License-Identifier: Apache-2.0
// Reductions over the middle of a view: out[o][i] = op over r of x[o][r][i].
//
//   x [outer][size][inner], out [outer][inner]
//   reduce_f32: sum, mean, max, min, prod, l2 (root of the sum of squares)
//   reduce_i32, reduce_i64: sum, mean (truncated), max, min, prod
//   Of size 0: 0, 1 of prod, the lowest number of max, the highest of min, as ONNX says; of mean
//   NaN, of integers 0.
//   argmax_f32, argmax_i32, argmax_i64: out is s64, the first place of the largest value, with
//   take_last the last one (the first NaN where there is one)
//
// Grid: (ceil(outer * inner / chunk)), any local size; each work-item computes `chunk` results.
// Bounds: outer * inner < 2^31; size >= 1 of argmax. max and min propagate NaN.
#include "rows/row.clh"

#define OP_SUM 0
#define OP_MEAN 1
#define OP_MAX 2
#define OP_MIN 3
#define OP_PROD 4
#define OP_L2 5

float start_of(int op) {
  return op == OP_MAX ? -INFINITY : op == OP_MIN ? INFINITY : op == OP_PROD ? 1.0f : 0.0f;
}

float16 combine16(float16 sum, float16 x, int op) {
  switch (op) {
    case OP_MAX: return (x > sum) | isnan(x) ? x : sum;
    case OP_MIN: return (x < sum) | isnan(x) ? x : sum;
    case OP_PROD: return sum * x;
    case OP_L2: return fma(x, x, sum);
    default: return sum + x;
  }
}

float finish(float sum, int op, int size) {
  return op == OP_MEAN ? sum / size : op == OP_L2 ? sqrt(sum) : sum;
}

__kernel void reduce_f32(__global const float* x, __global float* out, int op, int outer, int size,
                         int inner, int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, outer * inner);
  for (int at = first; at < last;) {
    const int column = at % inner;
    __global const float* from = x + (size_t)(at / inner) * size * inner + column;
    if (inner == 1) {  // sixteen partial results along the row
      float16 sum = start_of(op);
      for (int r = 0; r < size; r += 16) {
        const int n = min(16, size - r);
        const float16 combined = combine16(sum, load_row16(from, r, n, TYPE_F32, 1.0f, 0), op);
        sum = LANE < n ? combined : sum;
      }
      float lanes[16];
      vstore16(sum, 0, lanes);
      float16 result = lanes[0];
      if (op == OP_L2) {  // the lanes are sums of squares already
        result = sum16(sum);
      } else {
        for (int t = 1; t < 16; t++) result = combine16(result, (float16)(lanes[t]), op);
      }
      out[at++] = finish(result.s0, op, size);
      continue;
    }
    const int n = min(16, min(inner - column, last - at));  // sixteen columns at a time
    float16 sum = start_of(op);
    for (int r = 0; r < size; r++)
      sum = combine16(sum, load_row16(from, (size_t)r * inner, n, TYPE_F32, 1.0f, 0), op);
    float lanes[16];
    vstore16(sum, 0, lanes);
    for (int t = 0; t < n; t++) out[at + t] = finish(lanes[t], op, size);
    at += n;
  }
}

#define REDUCE_INTEGER(NAME, TYPE, LOWEST, HIGHEST)                                                \
  __kernel void reduce_##NAME(__global const TYPE* x, __global TYPE* out, int op, int outer,       \
                              int size, int inner, int chunk) {                                    \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, outer * inner);          \
    for (int at = first; at < last; at++) {                                                        \
      __global const TYPE* from = x + (size_t)(at / inner) * size * inner + at % inner;            \
      TYPE sum = op == OP_MAX ? LOWEST : op == OP_MIN ? HIGHEST : op == OP_PROD ? 1 : 0;           \
      for (int r = 0; r < size; r++) {                                                             \
        const TYPE v = from[(size_t)r * inner];                                                    \
        sum = op == OP_MAX ? max(sum, v) : op == OP_MIN ? min(sum, v)                              \
              : op == OP_PROD ? sum * v : sum + v;                                                 \
      }                                                                                            \
      out[at] = op == OP_MEAN && size ? sum / size : sum;                                          \
    }                                                                                              \
  }

REDUCE_INTEGER(i32, int, INT_MIN, INT_MAX)
REDUCE_INTEGER(i64, long, LONG_MIN, LONG_MAX)

#define ARGMAX(NAME, TYPE)                                                                         \
  __kernel void argmax_##NAME(__global const TYPE* x, __global long* out, int outer, int size,     \
                              int inner, int take_last, int chunk) {                               \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, outer * inner);          \
    for (int at = first; at < last; at++) {                                                        \
      __global const TYPE* from = x + (size_t)(at / inner) * size * inner + at % inner;            \
      int best = 0;                                                                                \
      TYPE largest = from[0];                                                                      \
      for (int r = 1; r < size && largest == largest; r++) { /* until the first NaN */             \
        const TYPE v = from[(size_t)r * inner];                                                    \
        const bool found = v > largest || (take_last && v == largest) || v != v;                   \
        best = found ? r : best;                                                                   \
        largest = found ? v : largest;                                                             \
      }                                                                                            \
      out[at] = best;                                                                              \
    }                                                                                              \
  }

ARGMAX(f32, float)
ARGMAX(i32, int)
ARGMAX(i64, long)
