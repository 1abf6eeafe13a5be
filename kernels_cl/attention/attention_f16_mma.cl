// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in f16 by NVIDIA's matrix units, sm_80 and later. Same arguments
// and semantics as attention_f32_ref.cl. q times scale, k, v and the exponentials of the scores are
// rounded to f16; sums and softmax are f32.
//
// A work-group computes ROWS rows of one head, each of its sub-groups 16 of them, which stay in its
// registers. Tiles of KEYS keys and values pass through local memory once, each read by the whole
// group. A step takes 32 keys, with an online softmax (FlashAttention-2, Dao 2023): where they have
// a larger score than all before, the sums so far are rescaled.
//
//                     BLOCK keys
//                  o---------------o        k_tile, v_tile [CELLS][PITCH][16 bytes]: a cell is
//         HEAD_MAX | k, ldmatrix   |        eight columns of a key; those of neighbouring keys
//                  o---------------o        lie side by side, the pad after them makes stores of
//   HEAD_MAX                                all cells of a key meet different banks:
//   o------o       o---------------o
//   |  q   | 16    | scores, then  | 16     cell 0  | key 0 | key 1 | ... | key KEYS - 1 | pad |
//   |      | rows  | p in f16      | rows   cell 1  | key 0 | key 1 | ... | key KEYS - 1 | pad |
//   o------o       o---------------o
//                  o---------------o        g = lane / 4, t = lane % 4: the scores that a lane
//         HEAD_MAX | v,            |        holds, of rows g and g + 8 with keys 2t, 2t + 1,
//                  | ldmatrix.trans|        2t + 8, 2t + 9 of 16, become the p that it gives to
//                  o---------------o        p v, and never leave its registers.
//
// The four lanes of a row exchange the largest score of a step, and at the end their totals, by
// shfl.sync. A masked key contributes nothing, whatever its k and v hold. A padded sequence gives
// the same bytes as a packed one: missing keys add 0. What f16 cannot hold (65,520 and more)
// becomes infinite, and so may the result, or NaN: where all keys have minus infinity, too.
//
// BIAS 1: scores may have a bias and a window: a score outside of it is minus infinity, and tiles
// outside of the windows of all rows are left out.
//
// Grid: (ITEMS * ceil(longest sequence / ROWS), heads, batch), work-group (ITEMS, 1, 1) with ITEMS
// = 2 * ROWS; block_rows is not read. Bounds: head_size <= HEAD_MAX; 33 KB of
// local memory; q, k and v begin at multiples of 16 bytes, out at one of 8. No unsafe math options.
#include "attention/attention_f16_mma.clh"
#include "attention/parameters.clh"

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void attention_f32(
    ATTENTION_FLOAT_PARAMETERS(float)) {
  __local int4 k_tile[CELLS * PITCH];
  __local int4 v_tile[CELLS * PITCH];
  LANE_EXCHANGE(shown, ITEMS);
  MATRIX_EXCHANGE(exchange, ITEMS);
  const int sub = ITEM / UNIT_LANES, lane = ITEM % UNIT_LANES, g = lane / 4, t = lane % 4;
  const int head = get_group_id(1), sequence = get_group_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int group_row = begin + (int)get_group_id(0) * ROWS, row0 = group_row + 16 * sub + g;
  // Every work-item meets every barrier: a group past its sequence has no tiles.
  const Tiles tiles = tiles_of(begin, end, group_row, BIAS ? window : 0);
  const bool q_aligned = ((q_stride | q_offset | head_size) & 1) == 0;
  const bool k_aligned = ((k_stride | k_offset | head_size) & 3) == 0;
  const bool v_aligned = ((v_stride | v_offset | head_size) & 3) == 0;
  const float log2_scale = scale * M_LOG2E_F;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;

  UnitA rows[STEPS];
#pragma unroll
  for (int w = 0; w < STEPS; w++) {
    rows[w] = (UnitA)(0);
    if (tiles.first < tiles.end) {
      __global const float* low = q + (size_t)min(row0, end - 1) * q_stride;
      __global const float* high = q + (size_t)min(row0 + 8, end - 1) * q_stride;
      const int d = 16 * w + 2 * t;
      rows[w].s0 = load_pair(low, d, head_size, log2_scale, q_aligned);
      rows[w].s1 = load_pair(high, d, head_size, log2_scale, q_aligned);
      rows[w].s2 = load_pair(low, d + 8, head_size, log2_scale, q_aligned);
      rows[w].s3 = load_pair(high, d + 8, head_size, log2_scale, q_aligned);
    }
  }

  UnitC scores[TILES_N], sums[TILES_D];
  float largest[2] = {-FLT_MAX, -FLT_MAX}, total[2] = {0.0f, 0.0f};  // total: of this lane's keys
#pragma unroll
  for (int n = 0; n < TILES_D; n++) sums[n] = (UnitC)(0.0f);

  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    barrier(CLK_LOCAL_MEM_FENCE);  // the tile before has been read
    load_tile(k, k_stride, key0, end, key_mask, use_mask, head_size, k_aligned, k_tile);
    load_tile(v, v_stride, key0, end, key_mask, use_mask, head_size, v_aligned, v_tile);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int i = 0; i < KEYS && key0 + i < end; i += BLOCK) {
      make_scores(scores, rows, k_tile + i, exchange);
      const int4 all_keys[2] = {attended_by_lane(key0 + i, end, key_mask, use_mask),
                                attended_by_lane(key0 + i + 16, end, key_mask, use_mask)};
      int words[2][2][2];  // of p: [16 keys][row][pair of keys]
      float shrink[2];
#pragma unroll
      for (int r = 0; r < 2; r++) {
        float4 x[2];
        int4 is_key[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const float4 score = scores_of(scores + 2 * h, r);
          x[h] = score, is_key[h] = all_keys[h];
#if BIAS
          // To natural logarithms, in which the bias is, and back.
          const Bias added = BIAS_OF(head, begin);
          const int key = key0 + i - begin + 16 * h + ITEM % 4 * 2;
          x[h] = with_bias(score, M_LN2_F, added, window, row0 + 8 * r - begin, key, KEYS_OF_QUAD,
                           end - 1 - begin);
          if (bias) x[h] = to_base_2(x[h]);
          // Minus infinity of the product is an overflow, which must be seen.
          is_key[h] &= (x[h] != -INFINITY) | (score == -INFINITY);
#endif
        }
        const float before = largest[r];
        const float most = largest_of(fmax(select((float4)(-FLT_MAX), x[0], is_key[0]),
                                           select((float4)(-FLT_MAX), x[1], is_key[1])));
        largest[r] = largest_of_row(fmax(before, most), shown);
        shrink[r] = exp2_negative((float4)(before - largest[r])).s0;
        total[r] *= shrink[r];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const float4 p =
              select((float4)(0.0f), exp2_or_nan(x[h] - largest[r]), is_key[h]);
          total[r] += p.s0 + p.s1 + p.s2 + p.s3;
          words[h][r][0] = to_halves(p.s0, p.s1);
          words[h][r][1] = to_halves(p.s2, p.s3);
        }
      }
#pragma unroll
      for (int n = 0; n < TILES_D; n++)
        sums[n] *= (UnitC)(shrink[0], shrink[0], shrink[1], shrink[1]);
      MATRIX_UNROLL
      for (int h = 0; h < 2; h++) {
        const UnitA p = {words[h][0][0], words[h][1][0], words[h][0][1], words[h][1][1]};
        add_values(sums, &p, v_tile + i + 16 * h, exchange);
      }
    }
  }

  const float all[2] = {sum_of_row(total[0], shown), sum_of_row(total[1], shown)};
  const bool pairs = head_size % 2 == 0;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    // Minus infinity for all keys is no number; no key at all gives 0.
    const float inverse = all[r] == 0.0f ? 0.0f : largest[r] == -FLT_MAX ? NAN : 1.0f / all[r];
    const int row = row0 + 8 * r;
    if (row >= end) continue;
    __global float* to = out + ((size_t)row * heads + head) * head_size;
#pragma unroll
    for (int n = 0; n < TILES_D; n++) {
      const int column = n * UNIT_N + 2 * t;
      const float2 y = (r == 0 ? sums[n].lo : sums[n].hi) * inverse;
      if (pairs) {
        if (column < head_size) *(__global float2*)(to + column) = y;
      } else {
        if (column < head_size) to[column] = y.s0;
        if (column + 1 < head_size) to[column + 1] = y.s1;
      }
    }
  }
}
