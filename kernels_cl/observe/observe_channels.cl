// SPDX-License-Identifier: Apache-2.0
// What accuracy transforms keep of a tensor [rows][channels]: statistics of each channel, and the
// Gram matrix of its channels.
//
//   observe_channels   x -> state [3][channels]            smallest, largest, sum of squares
//   observe_gram       x -> gram [channels][channels]      gram += x^T x; CPUs have a program
//                                                          of their own, observe_gram_portable
//   observe_shift      x -> state [2][channels]            sums of x, and of Q/DQ(x) - x
//
//              channels                     j .. j + 15
//          +-------------+               +---+---------+---+
//          | x           |               |   |         |   |
//     rows |     16 at   |    channels   |   | 8 x 16  | < a tile of observe_gram: a work-item
//          |     a time  |               |   |         |   |  makes one; below the diagonal they
//          +-------------+               +---+---------+---+  stay as they are
//
// observe_gram and observe_shift add to what is there, observe_channels where `keep` says so. A NaN
// shows in the sum of squares.
// Grids: observe_channels and observe_shift (ceil(channels / 16)), observe_gram
// (ceil(channels / 16), ceil(channels / 8)), any local size. Bounds: none.
#include "rows/row.clh"

// `keep`: 0 to begin anew, 1 to keep what the state has seen before.
__kernel void observe_channels(__global const float* x, __global float* state, int rows,
                               int channels, int keep) {
  const int c = get_global_id(0) * 16;
  if (c >= channels) return;
  const int n = min(16, channels - c);
  float16 low = INFINITY, high = -INFINITY, squares = 0.0f;
  for (int r = 0; r < rows; r++) {
    const float16 v = load_row16(x, (size_t)r * channels + c, n, TYPE_F32, 1.0f, 0);
    low = fmin(low, v);
    high = fmax(high, v);
    squares = fma(v, v, squares);
  }
  if (keep) {
    low = fmin(low, load_row16(state, c, n, TYPE_F32, 1.0f, 0));
    high = fmax(high, load_row16(state, channels + c, n, TYPE_F32, 1.0f, 0));
    squares += load_row16(state, 2 * channels + c, n, TYPE_F32, 1.0f, 0);
  }
  store_row16(state, c, n, low);
  store_row16(state, channels + c, n, high);
  store_row16(state, 2 * channels + c, n, squares);
}

// Q/DQ by `scale` and `zero_point`, with integers from `lowest` to `highest`.
__kernel void observe_shift(__global const float* x, __global float* state, int rows, int channels,
                            float scale, int zero_point, float lowest, float highest) {
  const int c = get_global_id(0) * 16;
  if (c >= channels) return;
  const int n = min(16, channels - c);
  float16 sum = 0.0f, shift = 0.0f;
  for (int r = 0; r < rows; r++) {
    const float16 v = load_row16(x, (size_t)r * channels + c, n, TYPE_F32, 1.0f, 0);
    const float16 q = clamp(rint(v / scale) + (float)zero_point, lowest, highest);
    sum += v;
    shift += (q - (float)zero_point) * scale - v;
  }
  store_row16(state, c, n, sum + load_row16(state, c, n, TYPE_F32, 1.0f, 0));
  store_row16(state, channels + c, n,
              shift + load_row16(state, channels + c, n, TYPE_F32, 1.0f, 0));
}

float8 load_columns(__global const float* x, int n) {
  if (n == 8) return vload8(0, x);
  float all[8] = {0};
  for (int t = 0; t < n; t++) all[t] = x[t];
  return vload8(0, all);
}

__kernel void observe_gram(__global const float* x, __global float* gram, int rows, int channels) {
  const int j = get_global_id(0) * 16, i = get_global_id(1) * 8;
  if (j >= channels || i >= channels || j + 15 < i) return;
  const int nj = min(16, channels - j), ni = min(8, channels - i);
  float16 sum[8];
  for (int t = 0; t < 8; t++) sum[t] = 0.0f;
  for (int r = 0; r < rows; r++) {
    __global const float* row = x + (size_t)r * channels;
    const float16 v = load_row16(row, j, nj, TYPE_F32, 1.0f, 0);
    const float8 u = load_columns(row + i, ni);
    sum[0] = fma(v, u.s0, sum[0]);
    sum[1] = fma(v, u.s1, sum[1]);
    sum[2] = fma(v, u.s2, sum[2]);
    sum[3] = fma(v, u.s3, sum[3]);
    sum[4] = fma(v, u.s4, sum[4]);
    sum[5] = fma(v, u.s5, sum[5]);
    sum[6] = fma(v, u.s6, sum[6]);
    sum[7] = fma(v, u.s7, sum[7]);
  }
  for (int t = 0; t < ni; t++) {
    const size_t at = (size_t)(i + t) * channels + j;
    store_row16(gram, at, nj, sum[t] + load_row16(gram, at, nj, TYPE_F32, 1.0f, 0));
  }
}
