// SPDX-License-Identifier: Apache-2.0
// What calibration keeps of a tensor: its range, and a histogram of its values or absolute values.
//
//   observe_gather     a box of x -> a dense part of y             the real values of a padded
//                      sample
//   observe_range      x [first .. end) -> partials [items][4]     each work-item one chunk of x
//   observe_merge      partials [items][4] -> states [place][4]    one work-item
//   observe_histogram  x [first .. end) -> counts [COPIES][bins]   added to what is there
//
// A range is (smallest, largest, smallest absolute value, 1 if a NaN was met else 0).
// Bin i holds edges[i] <= v < edges[i + 1], the last bin its right edge too; values outside are
// left out: as numpy.histogram. edges [bins + 1] ascend and lie about evenly.
//
// Grid of observe_range and observe_histogram: (ceil((end - first) / chunk)), any local size; items
// past it have no effect.
// Bounds: end < 2^31, bins >= 1; a count wraps at 2^32.
#include "rows/row.clh"

#ifndef COPIES
#define COPIES 1  // histograms side by side, counts [COPIES][bins]: item i adds to copy i % COPIES
#endif
#ifndef EXCLUSIVE
  #define EXCLUSIVE 0  // 1: no two items share a copy, so that counting needs no atomics
#endif
#if EXCLUSIVE
  #define COUNT(place) (*(place))++
#else
  #define COUNT(place) atomic_inc((volatile __global uint*)(place))
#endif

// y[target + (plane * rows + row) * run + i] = x[first + plane * plane_stride + row * row_stride +
// i] for i < run. Grid: (rows, planes).
__kernel void observe_gather(__global const float* restrict x, __global float* restrict y,
                             int first, int target, int plane_stride, int row_stride, int run,
                             int rows, int planes) {
  const int row = get_global_id(0), plane = get_global_id(1);
  if (row >= rows || plane >= planes) return;
  __global const float* from = x + first + plane * plane_stride + row * row_stride;
  __global float* to = y + target + (plane * rows + row) * run;
  for (int i = 0; i < run; i++) to[i] = from[i];
}

// Of an item's chunk: `end` of those that fill up the last group.
static int begin_of(int item, int first, int end, int chunk) {
  return (int)min((long)first + (long)item * chunk, (long)end);
}

__kernel void observe_range(__global const float* x, __global float* partials, int first, int end,
                            int chunk) {
  const int item = get_global_id(0), begin = begin_of(item, first, end, chunk);
  if (begin >= end && item > 0) return;
  end = begin + min(chunk, end - begin);
  float16 low = INFINITY, high = -INFINITY, near = INFINITY;
  int16 nan = 0;
  for (int i = begin; i < end; i += 16) {
    const int n = min(16, end - i);
    const float16 v = load_row16(x, i, n, TYPE_F32, 1.0f, 0), a = fabs(v);
    const int16 used = LANE < n;
    low = (used & (v < low)) ? v : low;  // false for NaN
    high = (used & (v > high)) ? v : high;
    near = (used & (a < near)) ? a : near;
    nan |= used & isnan(v);
  }
  float l[16], h[16], a[16];
  int b[16];
  vstore16(low, 0, l);
  vstore16(high, 0, h);
  vstore16(near, 0, a);
  vstore16(nan, 0, b);
  for (int t = 1; t < 16; t++) {
    l[0] = fmin(l[0], l[t]);
    h[0] = fmax(h[0], h[t]);
    a[0] = fmin(a[0], a[t]);
    b[0] |= b[t];
  }
  vstore4((float4)(l[0], h[0], a[0], b[0] ? 1.0f : 0.0f), item, partials);
}

// `keep`: 0 to begin anew, 1 to keep what the state has seen before.
__kernel void observe_merge(__global const float* partials, __global float* states, int items,
                            int place, int keep) {
  float4 r = keep ? vload4(place, states) : (float4)(INFINITY, -INFINITY, INFINITY, 0.0f);
  for (int i = 0; i < items; i++) {
    const float4 p = vload4(i, partials);
    r = (float4)(fmin(r.x, p.x), fmax(r.y, p.y), fmin(r.z, p.z), fmax(r.w, p.w));
  }
  vstore4(r, place, states);
}

__kernel void observe_histogram(__global const float* x, __global const float* edges,
                                __global uint* counts, int first, int end, int chunk,
                                int bins, int absolute, float bins_per_unit) {
  const int item = get_global_id(0), begin = begin_of(item, first, end, chunk);
  end = begin + min(chunk, end - begin);
  __global uint* own = counts + (size_t)(item % COPIES) * bins;
  const float left = edges[0], right = edges[bins];
  for (int i = begin; i < end; i += 16) {
    const int n = min(16, end - i);
    float16 v = load_row16(x, i, n, TYPE_F32, 1.0f, 0);
    v = absolute ? fabs(v) : v;
    const float16 guess = fmin(fmax((v - left) * bins_per_unit, 0.0f), bins - 1.0f);
    float values[16];
    int guesses[16];
    vstore16(v, 0, values);
    vstore16(convert_int16(guess), 0, guesses);
    for (int t = 0; t < n; t++) {
      if (!(values[t] >= left && values[t] <= right)) continue;
      int bin = guesses[t];
      while (bin > 0 && values[t] < edges[bin]) bin--;
      while (bin < bins - 1 && values[t] >= edges[bin + 1]) bin++;
      COUNT(own + bin);
    }
  }
}
