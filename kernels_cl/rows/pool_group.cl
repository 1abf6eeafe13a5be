// SPDX-License-Identifier: Apache-2.0
// One row for each sequence of packed tokens, for GPUs: a work-group per sequence (row_group.clh),
// whose work-items keep their columns in registers while the tokens pass.
//
// Same arguments and semantics as pool.cl.
// Grid: (ITEMS * batch), work-group (ITEMS, 1, 1).
// Bounds: columns <= 4 * ITEMS * VECTORS; every buffer begins at a multiple of 16 bytes.
#include "rows/pool.clh"
#include "rows/row_group.clh"

#define TOKENS (VECTORS > 4 ? 2 : 4)  // loaded before the first of them is added

// Adds the tokens that count to `sum`, in their order, and returns how many they are. Inlined with
// constants for `largest` and `aligned`, so that no branch comes between the loads: lanes past the
// columns load the last one. Tokens that do not count are left out by select: they may hold NaN.
__attribute__((always_inline)) static int pool_tokens(__global const float* x,
                                                      __global const uchar* key_mask, int2 tokens,
                                                      int hidden, int columns, bool largest,
                                                      bool aligned, float4 sum[VECTORS]) {
  // Without a mask, bytes of x are read in its place.
  __global const uchar* mask = key_mask ? key_mask : (__global const uchar*)x;
  const int item = get_local_id(0), last = columns - 1;
  int count = 0;
  for (int first = tokens.x; first < tokens.y; first += TOKENS) {
    int taken[TOKENS];
    float4 rows[TOKENS][VECTORS];
#pragma unroll
    for (int t = 0; t < TOKENS; t++) taken[t] = mask[min(first + t, tokens.y - 1)];
#pragma unroll
    for (int t = 0; t < TOKENS; t++) {
      __global const float* row = x + (size_t)min(first + t, tokens.y - 1) * hidden;
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        const int i = 4 * (v * ITEMS + item);
        if (aligned)
          rows[t][v] = ((__global const float4*)row)[min(i, last) / 4];
        else
          rows[t][v] = (float4)(row[min(i, last)], row[min(i + 1, last)], row[min(i + 2, last)],
                                row[min(i + 3, last)]);
      }
    }
#pragma unroll
    for (int t = 0; t < TOKENS; t++) {
      const int counted = (first + t < tokens.y) & ((key_mask == 0) | (taken[t] != 0));
      count += counted;
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        const float4 x4 = rows[t][v];
        const int4 takes = largest ? (x4 > sum[v]) | isnan(x4) : (int4)(-1);
        sum[v] = select(sum[v], largest ? x4 : sum[v] + x4, takes & -counted);
      }
    }
  }
  return count;
}

GROUP_KERNEL void pool(__global const float* x, __global const int* seq_offsets,
                       __global const uchar* key_mask, __global float* out, int kind, int hidden,
                       int columns, int unit_norm, float min_norm, int batch) {
  __local float shared[SHARED_WORDS];
  const int b = get_group_id(0), item = get_local_id(0);
  const bool aligned = hidden % 4 == 0;
  const int2 tokens = pooled_tokens(seq_offsets, key_mask, kind, b);
  float4 sum[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) sum[v] = (float4)(pool_start(kind));
  int count;
  if (kind == POOL_MAX)
    count = aligned ? pool_tokens(x, key_mask, tokens, hidden, columns, true, true, sum)
                    : pool_tokens(x, key_mask, tokens, hidden, columns, true, false, sum);
  else
    count = aligned ? pool_tokens(x, key_mask, tokens, hidden, columns, false, true, sum)
                    : pool_tokens(x, key_mask, tokens, hidden, columns, false, false, sum);
  const float divisor = kind == POOL_MEAN ? (float)count : 1.0f;
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int n = columns - 4 * (v * ITEMS + item);
    sum[v] = first_lanes(count ? sum[v] / divisor : (float4)(0.0f), n, 0.0f);
    squares += sum4(sum[v] * sum[v]);
  }
  const float factor = unit_norm ? inverse_norm(group_sum(squares, shared), min_norm) : 1.0f;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = 4 * (v * ITEMS + item);
    store_floats4(out, (size_t)b * columns + i, columns - i, sum[v] * factor, columns % 4 == 0);
  }
}
