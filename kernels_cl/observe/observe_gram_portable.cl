// SPDX-License-Identifier: Apache-2.0
// observe_gram for CPUs: gram [channels][channels] += x^T x, on and above the diagonal.
//
//              12 columns i ..                        j .. j + WIDE - 1
//          +-----+-------------+               +-------+-------+---+
//          | x   |             |               |       | TALL  |   | < a tile, in registers; a
//     rows |     | copied      |    channels   |       +-------+   |  work-item makes those of its
//          |     | next to     |               |       | x     |   |  12 columns and GROUP others
//          |     | each other  |               |       | WIDE  |   |
//          +-----+-------------+               +-------+-------+---+
//
// A row is often a multiple of 512 bytes long, so that a column falls into few sets of the cache:
// the 12 columns are copied, up to KEPT_ROWS rows at a time, and serve all tiles of the work-item.
// Grid: (ceil(channels / GROUP), ceil(channels / 12)), any local size. Bounds: none.
#include "lib/lanes.clh"

#define GROUP 192      // columns of a work-item: 6 tiles or 12 read what it has copied
#define COLUMNS 12     // a multiple of TALL
#define KEPT_ROWS 512  // 24 KiB of copies; most samples are shorter
#define WIDE (2 * LANES)
#define TALL (LANES == 16 ? 12 : 6)  // 2 * TALL sums and two vectors of x fill the registers
#define GRAM_INLINE static __attribute__((always_inline))

// A tile of WIDE columns j .. and of `tall` rows i ..: x and kept begin at the same row.
GRAM_INLINE void add_tile(__global const float* x, const float* kept, __global float* gram,
                          int rows, int channels, int tall) {
  floatv sum[2 * TALL];
  __attribute__((opencl_unroll_hint)) for (int t = 0; t < 2 * TALL; t++) sum[t] = 0.0f;
  for (int r = 0; r < rows; r++) {
    const __global FloatvAny* v = (const __global FloatvAny*)(x + (size_t)r * channels);
    const floatv v0 = v[0], v1 = v[1];
    __attribute__((opencl_unroll_hint)) for (int t = 0; t < TALL; t++) {
      const floatv u = kept[r * COLUMNS + t];
      sum[2 * t] = fma(v0, u, sum[2 * t]);
      sum[2 * t + 1] = fma(v1, u, sum[2 * t + 1]);
    }
  }
  __attribute__((opencl_unroll_hint)) for (int t = 0; t < TALL; t++) {
    if (t < tall) {
      __global FloatvAny* to = (__global FloatvAny*)(gram + (size_t)t * channels);
      to[0] += sum[2 * t];
      to[1] += sum[2 * t + 1];
    }
  }
}

// The columns that are left at the end of a row, one after the other.
GRAM_INLINE void add_columns(__global const float* x, const float* kept, __global float* gram,
                             int rows, int channels, int tall, int wide) {
  for (int t = 0; t < tall; t++)
    for (int c = 0; c < wide; c++) {
      float sum = 0.0f;
      for (int r = 0; r < rows; r++)
        sum = fma(x[(size_t)r * channels + c], kept[r * COLUMNS + t], sum);
      gram[(size_t)t * channels + c] += sum;
    }
}

__kernel void observe_gram(__global const float* x, __global float* gram, int rows, int channels) {
  const int first = get_global_id(0) * GROUP, i0 = get_global_id(1) * COLUMNS;
  const int last = min(first + GROUP, channels), columns = min(COLUMNS, channels - i0);
  if (first >= channels || columns <= 0 || last <= i0) return;
  float kept[COLUMNS * KEPT_ROWS];
  for (int done = 0; done < rows; done += KEPT_ROWS) {
    __global const float* block = x + (size_t)done * channels;
    const int n = min(KEPT_ROWS, rows - done);
    for (int r = 0; r < n; r++)
      for (int t = 0; t < COLUMNS; t++)
        kept[r * COLUMNS + t] = t < columns ? block[(size_t)r * channels + i0 + t] : 0.0f;
    for (int j = first; j < last; j += WIDE)
      for (int t = 0; t < columns && i0 + t < j + WIDE; t += TALL) {
        const int tall = min(TALL, columns - t);
        __global float* to = gram + (size_t)(i0 + t) * channels + j;
        if (j + WIDE <= channels)
          add_tile(block + j, kept + t, to, n, channels, tall);
        else
          add_columns(block + j, kept + t, to, n, channels, tall, channels - j);
      }
  }
}
