// SPDX-License-Identifier: Apache-2.0
// What calibration keeps of a tensor: its range, and a histogram of its values or absolute values.
//
//   observe_range      x [count] -> partials [items][4]    each work-item one chunk of x
//   observe_merge      partials [items][4] -> state [4]    one work-item
//   observe_histogram  x [count] -> counts [bins]          added to what is there
//
// A range is (smallest, largest, smallest absolute value, 1 if a NaN was met else 0).
// Bin i holds edges[i] <= v < edges[i + 1], the last bin its right edge too; values outside are
// left out: as numpy.histogram. edges [bins + 1] ascend and lie about evenly.
//
// Grid of observe_range and observe_histogram: (ceil(count / chunk)), any local size.
// Bounds: count < 2^31, bins >= 1; a count wraps at 2^32.
#include "row.clh"

__kernel void observe_range(__global const float* x, __global float* partials, int count,
                            int chunk) {
  const int item = get_global_id(0), first = item * chunk, end = min(first + chunk, count);
  float16 low = INFINITY, high = -INFINITY, near = INFINITY;
  int16 nan = 0;
  for (int i = first; i < end; i += 16) {
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

// `join`: 0 to begin anew, 1 to keep what the state has seen before.
__kernel void observe_merge(__global const float* partials, __global float* state, int items,
                            int join) {
  float4 r = join ? vload4(0, state) : (float4)(INFINITY, -INFINITY, INFINITY, 0.0f);
  for (int i = 0; i < items; i++) {
    const float4 p = vload4(i, partials);
    r = (float4)(fmin(r.x, p.x), fmax(r.y, p.y), fmin(r.z, p.z), fmax(r.w, p.w));
  }
  vstore4(r, 0, state);
}

__kernel void observe_histogram(__global const float* x, __global const float* edges,
                                volatile __global uint* counts, int count, int chunk, int bins,
                                int absolute, float bins_per_unit) {
  const int first = get_global_id(0) * chunk, end = min(first + chunk, count);
  const float left = edges[0], right = edges[bins];
  int last = 0;  // neighbours often share a bin: one atomic for a run of them
  uint run = 0;
  for (int i = first; i < end; i++) {
    const float v = absolute ? fabs(x[i]) : x[i];
    if (!(v >= left && v <= right)) continue;
    int bin = clamp((int)fmin((v - left) * bins_per_unit, bins - 1.0f), 0, bins - 1);
    while (bin > 0 && v < edges[bin]) bin--;
    while (bin < bins - 1 && v >= edges[bin + 1]) bin++;
    if (bin != last && run > 0) {
      atomic_add(&counts[last], run);
      run = 0;
    }
    last = bin;
    run++;
  }
  if (run > 0) atomic_add(&counts[last], run);
}
