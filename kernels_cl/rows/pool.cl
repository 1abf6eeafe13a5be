// SPDX-License-Identifier: Apache-2.0
// One row for each sequence of packed tokens: the mean or the largest of those that count, the
// first or the last of them; its first columns, divided by their L2 norm if that is asked for.
//
//   x [tokens][hidden]         out [batch][columns]
//     o o o o . .  sequence 0    o o o o     seq_offsets[batch + 1]: first row of each sequence
//     o o o o . .             -> o o o o     (null: each row of x is a sequence)
//     o o o o . .  sequence 1                key_mask[tokens]: 1 counts, 0 not (null: all count)
//
//   kind: see pool.clh. A sequence without a token that counts gives 0; max propagates NaN.
//
// Grid: (batch), any local size. Bounds: columns <= hidden. Each sequence is summed in the order of
// its tokens, so its row does not depend on the batch.
#include "persistent/place.clh"
#include "rows/pool.clh"
#include "rows/row.clh"

#ifndef VECTORS
#define VECTORS 4  // of sixteen columns, summed in one pass over the tokens
#endif

ROW_INLINE float16 combine_pooled16(float16 sum, float16 x, int kind) {
  return kind == POOL_MAX ? ((x > sum) | isnan(x) ? x : sum) : sum + x;
}

KERNEL pool(__global const float* x, __global const int* seq_offsets,
            __global const uchar* key_mask, __global float* out, int kind, int hidden, int columns,
            int unit_norm, float min_norm, int batch PLACE_PARAMETER) {
  const int b = PLACE.id.x;
  if (b >= batch) return;
  const int2 tokens = pooled_tokens(seq_offsets, key_mask, kind, b);
  __global float* to = out + (size_t)b * columns;
  float16 squares = 0.0f;
  for (int i = 0; i < columns; i += 16 * VECTORS) {
    float16 sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = pool_start(kind);
    int count = 0;
    for (int token = tokens.x; token < tokens.y; token++) {
      if (!counts(key_mask, token)) continue;
      count++;
      __global const float* from = x + (size_t)token * hidden + i;
      for (int v = 0; v < VECTORS; v++)
        sum[v] = combine_pooled16(sum[v], load_floats16(from, 16 * v, columns - i - 16 * v), kind);
    }
    for (int v = 0; v < VECTORS; v++) {
      const float divisor = kind == POOL_MEAN ? (float)count : 1.0f;
      const float16 row = count ? sum[v] / divisor : (float16)(0.0f);
      squares += row * row;
      store_row16(to, i + 16 * v, columns - i - 16 * v, row);
    }
  }
  if (!unit_norm) return;
  const float factor = inverse_norm(sum16(squares), min_norm);
  for (int i = 0; i < columns; i += 16)
    store_row16(to, i, columns - i, load_floats16(to, i, columns - i) * factor);
}

MERGEABLE(pool, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), INTEGER(5),
                 INTEGER(6), INTEGER(7), FLOAT(8), INTEGER(9), STEP_PLACE))
