// SPDX-License-Identifier: Apache-2.0
// One row for each sequence of packed tokens, for GPUs: a work-group per sequence (row_group.clh),
// whose work-items keep their columns in registers while the tokens pass.
//
// Same arguments and semantics as pool.cl.
// Grid: (ITEMS * batch), work-group (ITEMS, 1, 1).
// Bounds: columns <= 4 * ITEMS * VECTORS; every buffer begins at a multiple of 16 bytes.
#include "rows/pool.clh"
#include "rows/row_group.clh"

static float4 join_pooled4(float4 sum, float4 x, int kind) {
  return kind == POOL_MAX ? select(sum, x, (x > sum) | isnan(x)) : sum + x;
}

GROUP_KERNEL void pool(__global const float* x, __global const int* seq_offsets,
                       __global const uchar* key_mask, __global float* out, int kind, int hidden,
                       int columns, int unit_norm, float least_norm, int batch) {
  __local float shared[SHARED_WORDS];
  const int b = get_group_id(0), item = get_local_id(0);
  const bool aligned = hidden % 4 == 0;
  const int2 tokens = pooled_tokens(seq_offsets, key_mask, kind, b);
  float4 sum[VECTORS];
  for (int v = 0; v < VECTORS; v++) sum[v] = (float4)(pool_start(kind));
  int count = 0;
#pragma unroll 4
  for (int token = tokens.x; token < tokens.y; token++) {
    if (!counts(key_mask, token)) continue;
    count++;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
      const int i = 4 * (v * ITEMS + item);
      const float4 row = load_floats4(x, (size_t)token * hidden + i, columns - i, aligned);
      sum[v] = join_pooled4(sum[v], row, kind);
    }
  }
  const float divisor = kind == POOL_MEAN ? (float)count : 1.0f;
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int n = columns - 4 * (v * ITEMS + item);
    sum[v] = first_lanes(count ? sum[v] / divisor : (float4)(0.0f), n, 0.0f);
    squares += sum4(sum[v] * sum[v]);
  }
  const float factor = unit_norm ? inverse_norm(group_sum(squares, shared), least_norm) : 1.0f;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = 4 * (v * ITEMS + item);
    store_floats4(out, (size_t)b * columns + i, columns - i, sum[v] * factor, columns % 4 == 0);
  }
}
