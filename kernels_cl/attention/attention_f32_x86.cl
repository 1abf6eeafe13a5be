// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in f32 for CPUs with wide vectors: online softmax over blocks of
// keys.
//
//   out[row] = sum_key softmax_key(scale * q[row] . k[key]) * v[key]     within one head of one
//   sequence
//
//   q, k, v  [tokens][stride]: head h of a row starts at column offset + h * head_size, so that one
//            [tokens][3 * hidden] matrix can be passed three times. Strides and offsets in
//            elements.
//   out      [tokens][heads * head_size]
//   seq_offsets[batch + 1]  first row of each sequence; attention stays inside its sequence
//   key_mask[tokens]        1 = attend, 0 = not; read only where use_mask is not 0
//   bias, window            as in attention_f32_ref.cl
//
// The lanes of a vector are query rows, so keys and values are read as they lie, one scalar for all
// lanes, and maximum and sum need no work across lanes:
//
//   scores[key][rows]  = k[key][d] * query[d][rows]    summed over d, TILE keys at a time
//   result[d][rows]    = v[key][d] * scores[key][rows] summed over the keys, TILE columns at a time
//
// Attended keys and their values are first copied side by side: masked keys are absent, and a
// padded sequence gives the same bytes as a packed one. A row whose keys are all masked is 0. Keys
// after the windows of the ROWS rows at hand are absent, too, and blocks of keys before these. A
// block begins after a multiple of BLOCK_KEYS attended keys of the sequence, so that a row has the
// same bits whatever block_rows, which depends on the batch, as long as ROWS divides it.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1.
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of ROWS. No unsafe math
// options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 64  // keys whose scores are held at a time
#endif
#include "persistent/place.clh"
#include "attention/attention.clh"
#if LANES == 16
#define TILE 8  // keys or columns in one register tile: TILE * 2 sums
#else
#define TILE 4
#endif
#define ROWS (2 * LANES)  // rows held at a time: two vectors
#ifndef CACHED_FLOATS
#define CACHED_FLOATS (1 << 15)  // of keys kept at a time, and of values: 512 keys of 64
#endif
#ifndef CACHED_KEYS
#define CACHED_KEYS 2048  // of them at most, for small heads
#endif
#if CACHED_FLOATS < HEAD_MAX * BLOCK_KEYS || CACHED_KEYS < BLOCK_KEYS
#error "CACHED_FLOATS holds less than a block of the largest keys"
#endif

static void copy_row(__global const float* from, int size, float* to) {
  int i = 0;
  for (; i + LANES <= size; i += LANES)
    *(FloatvAny*)(to + i) = *(__global const FloatvAny*)(from + i);
  for (; i < size; i++) to[i] = from[i];
}

// Natural logarithms to those of base 2. Of a mask's -FLT_MAX no infinity comes: a row of such keys
// alone attends to all of them.
static floatv to_base_2(floatv x) {
  const floatv y = x * M_LOG2E_F;
  return ((x >= -FLT_MAX) & (y < -FLT_MAX)) ? (floatv)(-FLT_MAX) : y;
}

ONE_ITEM KERNEL attention_f32(ATTENTION_FLOAT_PARAMETERS(float) PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const Rows item = rows_of(PLACE, seq_offsets, block_rows);
  const int last = item.last;
  if (item.first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  out += head * head_size;
  const Bias added = BIAS_OF(head, item.begin);

  floatv query[HEAD_MAX * 2];      // [d][rows], times scale * log2(e)
  floatv result[HEAD_MAX * 2];     // [d][rows]
  floatv scores[(BLOCK_KEYS + TILE) * 2];  // [key][rows], then exponentials; padded to a tile
  // [key][d] of attended keys. Read where they lie, they would be a stride apart that leaves most
  // sets of the first-level cache idle.
  float keys[CACHED_FLOATS], values[CACHED_FLOATS];
  int places[CACHED_KEYS];  // of these keys, in the sequence

  const int cached_keys = min(CACHED_FLOATS / head_size, CACHED_KEYS) / BLOCK_KEYS * BLOCK_KEYS;
  const int has_bias = bias || window, last_place = item.end - 1 - item.begin;
  RowsOfKeys held = {item.first, 0, 0, 0};
  int cached = -1, next = 0;  // which cached_keys keys `keys` holds

  for (int row = item.first; row < last; row += ROWS) {
    if (row >= held.last) {
      held = next_rows(item, row, window, cached_keys, ROWS, BLOCK_KEYS, key_mask, use_mask);
      cached = -1;
    }
    const int rows = last - row;
    for (int h = 0; h < 2; h++)
      load_transposed((__global const int*)q + (size_t)min(row + h * LANES, last - 1) * q_stride,
                      q_stride, max(rows - h * LANES, 1), head_size, (intv*)query + h, 2);
    for (int i = 0; i < head_size * 2; i++) query[i] *= scale * M_LOG2E_F;
    for (int i = 0; i < head_size * 2; i++) result[i] = 0.0f;
    floatv largest0 = -FLT_MAX, largest1 = -FLT_MAX, total0 = 0.0f, total1 = 0.0f;

    for (int first_key = 0; first_key < held.attended; first_key += BLOCK_KEYS) {
      if (cached != first_key / cached_keys) {
        cached = first_key / cached_keys;
        if (cached == 0) next = held.begin;
        for (int n = 0; next < held.end && n < cached_keys; next++) {
          if (use_mask && !key_mask[next]) continue;
          copy_row(k + (size_t)next * k_stride, head_size, keys + n * head_size);
          copy_row(v + (size_t)next * v_stride, head_size, values + n * head_size);
          places[n++] = next - item.begin;
        }
      }
      const float* key_block = keys + first_key % cached_keys * head_size;
      const float* value_block = values + first_key % cached_keys * head_size;
      const int* place = places + first_key % cached_keys;
      const int row_place = row - item.begin;
      int count = min(BLOCK_KEYS, held.attended - first_key);
      while (window && count > 0 && place[count - 1] > row_place + ROWS - 1 + window) count--;
      if (count == 0 || (window && place[count - 1] < row_place - window)) continue;

      if (has_bias)
        load_bias(added, window, row_place, last_place, place, 0, count,
                  (count + TILE - 1) / TILE * TILE, scores);
      floatv block0 = largest0, block1 = largest1;
      for (int j = 0; j < count; j += TILE) {
        floatv a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) a0[t] = a1[t] = 0.0f;
        const float* key[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++)  // the last tile repeats the last key
          key[t] = key_block + min(j + t, count - 1) * head_size;
        for (int d = 0; d < head_size; d++) {
          const floatv q0 = query[d * 2], q1 = query[d * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv x = key[t][d];
            a0[t] = fma(x, q0, a0[t]);
            a1[t] = fma(x, q1, a1[t]);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {  // a key that is repeated leaves the maximum as it is
          if (has_bias) {
            a0[t] = to_base_2(fma(a0[t], (floatv)(M_LN2_F), scores[(j + t) * 2]));
            a1[t] = to_base_2(fma(a1[t], (floatv)(M_LN2_F), scores[(j + t) * 2 + 1]));
          }
          block0 = a0[t] > block0 ? a0[t] : block0;
          block1 = a1[t] > block1 ? a1[t] : block1;
          scores[(j + t) * 2] = a0[t];
          scores[(j + t) * 2 + 1] = a1[t];
        }
      }

      const Exp2 e = exp2_constants();
      const floatv old0 = exp2_negative(largest0 - block0, e),
                   old1 = exp2_negative(largest1 - block1, e);
      total0 *= old0;
      total1 *= old1;
      largest0 = block0;
      largest1 = block1;
      for (int j = 0; j < count; j++) {
        const floatv p0 = exp2_or_nan(scores[j * 2] - largest0, e);
        const floatv p1 = exp2_or_nan(scores[j * 2 + 1] - largest1, e);
        total0 += p0;
        total1 += p1;
        scores[j * 2] = p0;
        scores[j * 2 + 1] = p1;
      }

      int d = 0;
      for (; d + TILE <= head_size; d += TILE) {
        floatv a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          a0[t] = result[(d + t) * 2] * old0;
          a1[t] = result[(d + t) * 2 + 1] * old1;
        }
        for (int j = 0; j < count; j++) {
          const float* value = value_block + j * head_size + d;
          const floatv p0 = scores[j * 2], p1 = scores[j * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv x = value[t];
            a0[t] = fma(x, p0, a0[t]);
            a1[t] = fma(x, p1, a1[t]);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          result[(d + t) * 2] = a0[t];
          result[(d + t) * 2 + 1] = a1[t];
        }
      }
      for (; d < head_size; d++) {
        floatv a0 = result[d * 2] * old0, a1 = result[d * 2 + 1] * old1;
        for (int j = 0; j < count; j++) {
          const floatv x = value_block[j * head_size + d];
          a0 = fma(x, scores[j * 2], a0);
          a1 = fma(x, scores[j * 2 + 1], a1);
        }
        result[d * 2] = a0;
        result[d * 2 + 1] = a1;
      }
    }

    // The exponential of the largest score is 1. Without any the total is 0, or that of 2^-126 for
    // keys outside of the window.
    const floatv inverse0 = total0 < 0.5f ? (floatv)(0.0f) : 1.0f / total0;
    const floatv inverse1 = total1 < 0.5f ? (floatv)(0.0f) : 1.0f / total1;
    for (int d = 0; d < head_size; d++) {
      result[d * 2] *= inverse0;
      result[d * 2 + 1] *= inverse1;
    }
    for (int h = 0; h < 2; h++)
      store_transposed((__global int*)out + (size_t)(row + h * LANES) * heads * head_size,
                       (size_t)heads * head_size, rows - h * LANES, head_size,
                       (const intv*)result + h, 2);
  }
}

MERGEABLE(attention_f32, ATTENTION_FLOAT_ARGUMENTS)
