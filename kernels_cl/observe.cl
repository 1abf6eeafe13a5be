// SPDX-License-Identifier: Apache-2.0
// Calibration on the device: the range and the histogram of a tensor, gathered over many runs.
//
//   observe_minmax     state[0] = min(state[0], x), state[1] = max(state[1], x); start it at
//                      +inf, -inf. NaN is left out, as nanmin and nanmax do.
//   observe_histogram  counts[b] += number of x (of |x| where absolute is 1) in bin b of `bins` equal
//                      bins over [low, high]; the last bin holds `high` as well. NaN and values
//                      outside are not counted. factor = bins / (high - low), made by the host.
//
// Results do not depend on the order of the work-items: minimum, maximum and integer sums.
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn and hands
// its result over by atomics at its end: make chunk large (65536) where one item is one thread.
// Bounds: count < 2^31; counts are 32 bit. Histograms up to BINS_MAX bins are first made privately.
#include "row.clh"

#ifndef BINS_MAX
#define BINS_MAX 2048  // bins of the private histogram
#endif

// Replaces *place by value while value is on the wanted side of it.
void join_atomic(volatile __global float* place, float value, int want_larger) {
  float old = *place;
  while (want_larger ? value > old : value < old) {
    const int seen = atomic_cmpxchg((volatile __global int*)place, as_int(old), as_int(value));
    if (seen == as_int(old)) return;
    old = as_float(seen);
  }
}

__kernel void observe_minmax(__global const float* x, int count, __global float* state, int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  float16 low = INFINITY, high = -INFINITY;
  for (int i = first; i < last; i += 16) {
    const int n = min(16, last - i);
    float16 v = load_row16(x, i, n, TYPE_F32, 1.0f, 0);
    v = LANE < n ? v : (float16)(NAN);
    low = v < low ? v : low;  // false for NaN
    high = v > high ? v : high;
  }
  float lows[16], highs[16];
  vstore16(low, 0, lows);
  vstore16(high, 0, highs);
  for (int t = 1; t < 16; t++) {
    lows[0] = min(lows[0], lows[t]);
    highs[0] = max(highs[0], highs[t]);
  }
  join_atomic(state, lows[0], 0);
  join_atomic(state + 1, highs[0], 1);
}

__kernel void observe_histogram(__global const float* x, int count, int absolute, float low,
                                float high, float factor, int bins, volatile __global uint* counts,
                                int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  uint own[BINS_MAX];
  const int is_private = bins <= BINS_MAX && last - first > bins;
  if (is_private)
    for (int b = 0; b < bins; b++) own[b] = 0;
  for (int i = first; i < last; i++) {
    const float v = absolute ? fabs(x[i]) : x[i];
    if (!(v >= low && v <= high)) continue;
    const int b = min((int)((v - low) * factor), bins - 1);
    if (is_private)
      own[b]++;
    else
      atomic_inc(counts + b);
  }
  if (is_private)
    for (int b = 0; b < bins; b++)
      if (own[b]) atomic_add(counts + b, own[b]);
}
