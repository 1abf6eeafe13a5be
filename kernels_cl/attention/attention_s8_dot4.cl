// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for GPUs, with four-byte dot products. Same arguments and
// semantics as attention_s8_ref.cl; integer sums are exact.
//
// A work-group of 256 computes ROWS rows of one head. Tiles of KEYS keys pass through local memory
// twice: first for the largest score of each row and the sum of its exponentials, which must be
// known before probabilities are rounded, then for the probabilities and p v. If all keys fit
// in one tile, the scores stay in registers between the two passes.
//
//                 KEYS                               HEAD_MAX      Operands in local memory, scores
//              o--------o                          o----------o    and result in registers. Work
//     HEAD_MAX | k_tile |                     KEYS |  v_tile  |    is divided among the items as
//              o--------o                          o----------o    attention_groups.clh shows.
//   HEAD_MAX                               KEYS
//   o------o   o--------o                o------o  o----------o
//   |q_tile|   | scores | ROWS           |p_tile|  |  result  | ROWS
//   o------o   o--------o                o------o  o----------o
//
// Tiles are words of four bytes along the sum: two of them are one dot product, and an item reads
// those of its rows, keys or columns as vectors. A pitch is ROWS or KEYS and 4 more.
//
//   q_tile [HEAD_MAX/4][ROW_PITCH]   four columns of a row
//   k_tile [HEAD_MAX/4][KEY_PITCH]   four columns of a key
//   p_tile [KEYS/4][ROW_PITCH]       four keys of a row; between uses, what the ITEMS_X items of a
//                                    row tell each other
//   v_tile [KEYS/4][HEAD_MAX]        four keys of a column
//   q_sums [ROWS][4], k_sums [KEYS][4]   the bytes of a row or key summed, in four parts: for zero
//                                        points
//
// u8 bytes and their zero point are read as s8 by subtracting 128: one instruction for both.
//
// BIAS 1: scores may have a bias, which makes them floats, and a window: a score outside of it is
// minus infinity, and tiles outside of the windows of all rows are left out.
//
// Grid: (ITEMS * ceil(longest sequence / ROWS), heads, batch), work-group (ITEMS, 1, 1); block_rows
// is not read. Bounds: head_size <= HEAD_MAX, at most 29 KB of local memory in the default ROWS; q,
// k and v begin at multiples of 16 bytes. No unsafe math options.
#include "attention/attention_s8_tiles.clh"
#include "attention/parameters.clh"
#include "lib/narrow.clh"
#include "lib/types.clh"

static int sum4(int4 x) { return x.s0 + x.s1 + x.s2 + x.s3; }

// How scores are made of sums: their zero points, and their steps where they are quantized.
typedef struct {
  int q_zero, k_zero, both_zeros;  // both: their product, for a row
  float inv_scale;  // 0: they are not
  int low, high;
} ScoreTerms;

// Scores of this work-item's rows with its four keys of the tile.
__attribute__((always_inline)) static void make_scores(
    int scores[ITEM_ROWS][4], __local const int* q_tile, __local const int* k_tile,
    __local const int* q_sums, __local const int* k_sums, ScoreTerms t) {
  const int key = ITEM % ITEMS_X * 4, row = ITEM / ITEMS_X * ITEM_ROWS;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int term = t.both_zeros - t.q_zero * sum4(*(__local const int4*)&k_sums[4 * (key + j)]);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) scores[i][j] = term;
  }
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    const int term = t.k_zero * sum4(*(__local const int4*)&q_sums[4 * (row + i)]);
#pragma unroll
    for (int j = 0; j < 4; j++) scores[i][j] -= term;
  }
#pragma unroll 4
  for (int w = 0; w < WORDS; w++) {
    int rows[ITEM_ROWS], keys[4];
    load_local(q_tile + w * ROW_PITCH + row, ITEM_ROWS, rows);
    load_local(k_tile + w * KEY_PITCH + key, 4, keys);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) scores[i][j] = dot4_ss(rows[i], keys[j], scores[i][j]);
    }
  }
  if (t.inv_scale == 0.0f) return;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++)
      scores[i][j] = (int)clamp(rint(scores[i][j] * t.inv_scale), (float)t.low, (float)t.high);
  }
}

static float4 as_floats(const int* scores) {
  return (float4)(scores[0], scores[1], scores[2], scores[3]);
}

// Of row i of this work-item and its four keys from `key` on.
#define SCORES_OF(i)                                                                        \
  (BIAS ? with_bias(as_floats(scores[i]), qk_scale, added, window, first_row + (i) - begin, \
                    key - begin, (int4)(0, 1, 2, 3), end - 1 - begin)                       \
        : as_floats(scores[i]))

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW __kernel void attention_s8(
    ATTENTION_S8_PARAMETERS) {
  __local int q_tile[WORDS * ROW_PITCH] __attribute__((aligned(16)));
  __local int k_tile[WORDS * KEY_PITCH] __attribute__((aligned(16)));
  __local int p_tile[KEYS / 4 * ROW_PITCH] __attribute__((aligned(16)));
  __local int v_tile[KEYS / 4 * HEAD_MAX] __attribute__((aligned(16)));
  __local int q_sums[ROWS * 4] __attribute__((aligned(16)));
  __local int k_sums[KEYS * 4] __attribute__((aligned(16)));
  const int tx = ITEM % ITEMS_X, ty = ITEM / ITEMS_X;
  const int head = get_group_id(1), sequence = get_group_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int row0 = begin + (int)get_group_id(0) * ROWS;
  // Every work-item meets every barrier: a group past its sequence has no tiles.
  const Tiles tiles = tiles_of(begin, end, row0, BIAS ? window : 0);

  const Bytes q_bytes = bytes_of(q_type, q_zero_point, (q_stride | q_offset | head_size) % 16 == 0);
  const Bytes k_bytes = bytes_of(k_type, k_zero_point, (k_stride | k_offset | head_size) % 16 == 0);
  const Bytes v_bytes = bytes_of(v_type, v_zero_point, (v_stride | v_offset | head_size) % 4 == 0);
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, begin);
  const int first_row = row0 + ty * ITEM_ROWS;

  if (tiles.first < tiles.end)
    load_tile(q, q_stride, row0, end - 1, ROWS, head_size, q_bytes.flip, q_bytes.aligned, q_tile,
              ROW_PITCH, q_sums);
  const ScoreTerms terms = {q_bytes.zero,    k_bytes.zero, q_bytes.zero * k_bytes.zero * head_size,
                            score_inv_scale, score_low,    score_high};
  const float log2_scale = (BIAS && bias ? 1.0f : qk_scale) * M_LOG2E_F;
  int scores[ITEM_ROWS][4], sums[ITEM_ROWS][COLUMNS];
  float largest[ITEM_ROWS], total[ITEM_ROWS], p_sum[ITEM_ROWS];  // total becomes the factor of p
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    largest[i] = -FLT_MAX;
    total[i] = p_sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) sums[i][j] = 0;
  }

  // What probabilities need to know of all keys.
  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    barrier(CLK_LOCAL_MEM_FENCE);  // the tile before has been read
    load_tile(k, k_stride, key0, end - 1, KEYS, head_size, k_bytes.flip, k_bytes.aligned, k_tile,
              KEY_PITCH, k_sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    make_scores(scores, q_tile, k_tile, q_sums, k_sums, terms);
    const int key = key0 + tx * 4;
    const int4 all_keys = attended(key, end, key_mask, use_mask);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
      const float4 x = SCORES_OF(i);
      const int4 is_key = in_window(all_keys, x);
      const float4 known = select((float4)(-FLT_MAX), x, -is_key);
      const float before = largest[i];
      largest[i] = fmax(fmax(fmax(known.s0, known.s1), fmax(known.s2, known.s3)), before);
      if (unnormalized) continue;  // its probabilities need no total
      const float4 e =
          select((float4)(0.0f), exp2_negative((x - largest[i]) * log2_scale), -is_key);
      const float4 shrink = exp2_negative((float4)(before - largest[i]) * log2_scale);
      total[i] = total[i] * shrink.s0 + (e.s0 + e.s1 + e.s2 + e.s3);
    }
  }
  // Each work-item has seen its own keys.
  float of_row[ITEM_ROWS];
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) of_row[i] = largest[i];
  largest_along_row(p_tile, of_row);
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    total[i] *= exp2_negative((float4)(largest[i] - of_row[i]) * log2_scale).s0;
    largest[i] = of_row[i];
  }
  sum_along_row(p_tile, total);
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++)
    total[i] = unnormalized ? p_inv_scale : p_inv_scale / total[i];

  const int many = tiles.end - tiles.first > 1;
  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    barrier(CLK_LOCAL_MEM_FENCE);
    load_values(v, v_stride, key0, end - 1, head_size, v_bytes.flip, v_bytes.aligned, v_tile);
    if (many)
      load_tile(k, k_stride, key0, end - 1, KEYS, head_size, k_bytes.flip, k_bytes.aligned, k_tile,
                KEY_PITCH, k_sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (many) make_scores(scores, q_tile, k_tile, q_sums, k_sums, terms);
    const int key = key0 + tx * 4;
    const int4 all_keys = attended(key, end, key_mask, use_mask);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
      const float4 x = SCORES_OF(i);
      const int4 is_key = in_window(all_keys, x);
      const float4 e = exp2_negative((x - largest[i]) * log2_scale);
      const int4 steps = min(convert_int4(rint(e * total[i])), p_max);
      const int4 p = select((int4)(0), steps, -is_key);
      p_sum[i] += sum4(p);
      p_tile[tx * ROW_PITCH + ty * ITEM_ROWS + i] = p.s0 | p.s1 << 8 | p.s2 << 16 | p.s3 << 24;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
    for (int g = 0; g < KEYS / 4; g++) {
      int p[ITEM_ROWS], values[COLUMNS];
      load_local(p_tile + g * ROW_PITCH + ty * ITEM_ROWS, ITEM_ROWS, p);
#pragma unroll
      for (int j = 0; j < COLUMNS; j += WIDTH)
        load_local(v_tile + g * HEAD_MAX + COLUMN(j), WIDTH, values + j);
#pragma unroll
      for (int i = 0; i < ITEM_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) sums[i][j] = dot4_us(p[i], values[j], sums[i][j]);
      }
    }
  }

  sum_along_row(p_tile, p_sum);  // exact: at most 255 for each of 65,793 keys
  const float low = out_type == TYPE_U8 ? 0.0f : -128.0f;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    const int row = row0 + ty * ITEM_ROWS + i;
    if (row >= end) continue;
    const float scale = unnormalized ? pv_scale / fmax(p_sum[i], 1.0f) : pv_scale;
    const size_t at = ((size_t)row * heads + head) * head_size;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      if (COLUMN(j) >= head_size) continue;
      const float y = (sums[i][j] - v_bytes.zero * (int)p_sum[i]) * scale;
      if (out_type == TYPE_F32)
        ((__global float*)out)[at + COLUMN(j)] = y;
      else
        out[at + COLUMN(j)] =
            (uchar)(int)clamp(rint(y * out_inv_scale) + out_zero_point, low, low + 255.0f);
    }
  }
}
