// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax along the last axis for GPUs: a work-group per row (row_group.clh), of any
// size. A first pass finds the largest value and the sum relative to it, a second stores.
//
// Same arguments and semantics as softmax.cl; rows_per_item is not read.
// Grid: (ITEMS * rows), work-group (ITEMS, 1, 1).
// Bounds: every buffer begins at a multiple of 16 bytes. No unsafe math options.
#include "rows/row_group.clh"

GROUP_KERNEL void softmax_f32(__global const float* x, __global float* out, int rows, int size,
                              int logarithm, int rows_per_item) {
  __local float shared[2 * SHARED_WORDS];
  const bool aligned = size % 4 == 0;
  const size_t at = get_group_id(0) * (size_t)size;
  const int item = get_local_id(0);
  float largest = -INFINITY, total = 0.0f;
  for (int i = 4 * item; i < size; i += 4 * ITEMS) {
    const int n = min(4, size - i);
    const float4 v = first_lanes(load_floats4(x, at + i, n, aligned), n, -INFINITY);
    const float before = largest;
    largest = fmax(largest, max4(v));
    const float base = largest == -INFINITY ? 0.0f : largest;  // NaN in v shows in the total
    total = total * exp(before - base) + sum4(exp(v - base));
  }
  const float highest = group_max(largest, shared);
  const float sum =
      group_sum(total == 0.0f ? 0.0f : total * exp(largest - highest), shared + SHARED_WORDS);
  const float factor = 1.0f / sum, shift = log(sum);
  for (int i = 4 * item; i < size; i += 4 * ITEMS) {
    const int n = min(4, size - i);
    const float4 v = load_floats4(x, at + i, n, aligned);
    const float4 below = v - highest;
    store_floats4(out, at + i, n, logarithm ? below - shift : exp(below) * factor, aligned);
  }
}
