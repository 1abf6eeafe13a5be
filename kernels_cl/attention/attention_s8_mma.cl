// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 by NVIDIA's matrix units, sm_80 and later. Same arguments
// and same meaning as attention_s8_ref.cl; integer sums are exact.
//
// A work-group computes ROWS rows of one head, each of its sub-groups 16 of them. Tiles of 64 keys
// pass through local memory twice, as in attention_s8_dot4.cl: first for the largest score of each
// row and the sum of its exponentials, then for the probabilities and p v. A step takes 32 keys and
// is not unrolled: registers hold its scores, the rows and the sums.
//
//                     BLOCK keys
//                  o---------------o        k_tile [HEAD_MAX/16][K_CELLS][16 bytes]: a cell is 16
//         HEAD_MAX | k, ldmatrix   |        columns of a key
//                  o---------------o
//   HEAD_MAX                                cell 0  | key 0 | key 1 | ... | key KEYS - 1 | pad |
//   o------o       o---------------o        cell 1  | key 0 | key 1 | ... | key KEYS - 1 | pad |
//   |  q   | 16    | scores, then  | 16
//   |      | rows  | p in u8       | rows   v_tile [KEYS/4][V_PITCH][4 bytes]: a word is a column
//   o------o       o---------------o        of the four keys of a quad
//                  o---------------o
//         HEAD_MAX | v, by words   |        quad 0  | column 0 | ... | column HEAD_MAX - 1 | pad |
//                  o---------------o        quad 1  | column 0 | ... | column HEAD_MAX - 1 | pad |
//
// The pads, that of k_tile where two items copy a key, keep banks apart. k_sums [KEYS][PARTS]: the
// bytes of a key summed, for the zero point of q.
//
// The scores that a lane holds become its part of the probabilities, without an exchange, if
// p v takes the keys in this order (t = lane % 4, the bytes of a word from left to right):
//
//   a.s0, a.s1 (rows + 8)   keys 2t, 2t + 1, 2t + 8, 2t + 9
//   a.s2, a.s3 (rows + 8)   the same 16 keys later
//
// So quad q of v_tile holds keys 2t, 2t + 1, 2t + 8, 2t + 9 from 16 (q / 4) on, t = q % 4. u8 is
// read as s8, its bytes and its zero point less 128; probabilities are u8.
//
// BIAS 1: scores may have a bias, which makes them floats, and a window: a score outside of it is
// minus infinity, and tiles outside of the windows of all rows are left out.
//
// Grid: (ITEMS * ceil(longest sequence / ROWS), heads, batch), work-group (ITEMS, 1, 1) with ITEMS
// = 2 * ROWS; block_rows is not read. Bounds: head_size <= HEAD_MAX; 38 KB of local memory; q, k
// and v begin at multiples of 16 bytes, out at one of 8. No unsafe math options.
#include "attention/attention_s8_mma.clh"
#include "attention/parameters.clh"

// Of row r of this lane and the keys of its quad, 16 h keys after key0 + i.
#define SCORES_OF(h, r)                                                                 \
  (BIAS ? with_bias(scores_of(scores + 2 * (h), r), qk_scale, added, window,            \
                    row0 + 8 * (r) - begin, key0 + i - begin + 16 * (h) + ITEM % 4 * 2, \
                    KEYS_OF_QUAD, end - 1 - begin)                                      \
        : scores_of(scores + 2 * (h), r))

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void attention_s8(
    ATTENTION_S8_PARAMETERS) {
  __local int4 k_tile[HEAD_MAX / 16 * K_CELLS];
  __local int4 v_tile[KEYS / 4 * V_PITCH / 4];
  __local int k_sums[KEYS * PARTS] __attribute__((aligned(16)));
  __local float4 shared[ITEMS / 4];
  MATRIX_EXCHANGE(exchange, ITEMS);
  const int sub = ITEM / UNIT_LANES, lane = ITEM % UNIT_LANES, g = lane / 4, t = lane % 4;
  const int head = get_group_id(1), sequence = get_group_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int group_row = begin + (int)get_group_id(0) * ROWS, row0 = group_row + 16 * sub + g;
  // Every work-item meets every barrier: a group past its sequence has no tiles.
  const Tiles tiles = tiles_of(begin, end, group_row, BIAS ? window : 0);

  const Bytes q_bytes = bytes_of(q_type, q_zero_point, (q_stride | q_offset | head_size) % 16 == 0);
  const Bytes k_bytes = bytes_of(k_type, k_zero_point, (k_stride | k_offset | head_size) % 16 == 0);
  const Bytes v_bytes = bytes_of(v_type, v_zero_point, (v_stride | v_offset | head_size) % 4 == 0);
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, begin);

  UnitA rows[STEPS];
  int row_sum[2] = {0, 0};
#pragma unroll
  for (int w = 0; w < STEPS; w++) {
    if (tiles.first < tiles.end) {
      __global const uchar* low = q + (size_t)min(row0, end - 1) * q_stride;
      __global const uchar* high = q + (size_t)min(row0 + 8, end - 1) * q_stride;
      const int d = 32 * w + 4 * t;
      rows[w].s0 = load_word(low, d, head_size, q_bytes.flip, q_bytes.aligned);
      rows[w].s1 = load_word(high, d, head_size, q_bytes.flip, q_bytes.aligned);
      rows[w].s2 = load_word(low, d + 16, head_size, q_bytes.flip, q_bytes.aligned);
      rows[w].s3 = load_word(high, d + 16, head_size, q_bytes.flip, q_bytes.aligned);
    } else {
      rows[w] = (UnitA)(0);
    }
    row_sum[0] = dot4_ss(rows[w].s0, FOUR_ONES, dot4_ss(rows[w].s2, FOUR_ONES, row_sum[0]));
    row_sum[1] = dot4_ss(rows[w].s1, FOUR_ONES, dot4_ss(rows[w].s3, FOUR_ONES, row_sum[1]));
  }
  ScoreTerms terms = {q_bytes.zero, q_bytes.zero * k_bytes.zero * head_size,
                      {0, 0},       score_inv_scale,
                      score_low,    score_high};
  // At most 128 * 256 each: exact in float.
  terms.row[0] = k_bytes.zero * (int)sum_of_row(shared, (float)row_sum[0]);
  terms.row[1] = k_bytes.zero * (int)sum_of_row(shared, (float)row_sum[1]);

  const float log2_scale = (BIAS && bias ? 1.0f : qk_scale) * M_LOG2E_F;
  UnitC scores[TILES_N], sums[TILES_D];
  float largest[2] = {-FLT_MAX, -FLT_MAX}, total[2] = {0.0f, 0.0f}, p_sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int n = 0; n < TILES_D; n++) sums[n] = (UnitC)(0);

  // What probabilities need to know of all keys.
  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    barrier(CLK_LOCAL_MEM_FENCE);  // the tile before has been read
    load_keys(k, k_stride, key0, end - 1, head_size, k_bytes.flip, k_bytes.aligned, k_tile, k_sums);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int i = 0; i < KEYS && key0 + i < end; i += BLOCK) {
      make_scores(scores, rows, k_tile + i, k_sums + i * PARTS, terms, exchange);
      const int4 all_keys[2] = {attended_by_lane(key0 + i, end, key_mask, use_mask),
                                attended_by_lane(key0 + i + 16, end, key_mask, use_mask)};
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const float4 x[2] = {SCORES_OF(0, r), SCORES_OF(1, r)};
        const int4 is_key[2] = {in_window(all_keys[0], x[0]), in_window(all_keys[1], x[1])};
        const float4 most = fmax(select((float4)(-FLT_MAX), x[0], is_key[0]),
                                 select((float4)(-FLT_MAX), x[1], is_key[1]));
        const float before = largest[r];
        largest[r] = fmax(fmax(fmax(most.s0, most.s1), fmax(most.s2, most.s3)), before);
        if (unnormalized) continue;  // its probabilities need no total
        const float4 shrink = exp2_negative((float4)(before - largest[r]) * log2_scale);
        const float4 e =
            select((float4)(0.0f), exp2_negative((x[0] - largest[r]) * log2_scale), is_key[0]) +
            select((float4)(0.0f), exp2_negative((x[1] - largest[r]) * log2_scale), is_key[1]);
        total[r] = total[r] * shrink.s0 + (e.s0 + e.s1 + e.s2 + e.s3);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {  // each lane has seen its own keys
    const float most = largest_of_row(shared, largest[r]);
    total[r] *= exp2_negative((float4)(largest[r] - most) * log2_scale).s0;
    largest[r] = most;
    const float all = sum_of_row(shared, total[r]);
    total[r] = unnormalized ? p_inv_scale : p_inv_scale / all;
  }

  const bool many = tiles.end - tiles.first > 1;
  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    barrier(CLK_LOCAL_MEM_FENCE);
    load_quads(v, v_stride, key0, end - 1, head_size, v_bytes.flip, v_bytes.aligned, v_tile);
    if (many)
      load_keys(k, k_stride, key0, end - 1, head_size, k_bytes.flip, k_bytes.aligned, k_tile,
                k_sums);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int i = 0; i < KEYS && key0 + i < end; i += BLOCK) {
      make_scores(scores, rows, k_tile + i, k_sums + i * PARTS, terms, exchange);
      int words[2][2];  // [16 keys][row]
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int4 all_keys = attended_by_lane(key0 + i + 16 * h, end, key_mask, use_mask);
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const float4 x = SCORES_OF(h, r);
          const float4 e = exp2_negative((x - largest[r]) * log2_scale);
          const int4 steps = select((int4)(0), min(convert_int4(rint(e * total[r])), p_max),
                                    in_window(all_keys, x));
          p_sum[r] += steps.s0 + steps.s1 + steps.s2 + steps.s3;
          words[h][r] = steps.s0 | steps.s1 << 8 | steps.s2 << 16 | steps.s3 << 24;
        }
      }
      const UnitA p = {words[0][0], words[0][1], words[1][0], words[1][1]};
      __local const int* at = (__local const int*)v_tile + (i / 4 + t) * V_PITCH + g;
      MATRIX_UNROLL
      for (int n = 0; n < TILES_D; n++) {
        const UnitB values = {at[n * UNIT_N], at[n * UNIT_N + 4 * V_PITCH]};
        MATRIX_MULTIPLY_US(&sums[n], &p, &values, exchange, ITEM);
      }
    }
  }

  // Exact: at most 255 for each of 65,793 keys.
  const float all[2] = {sum_of_row(shared, p_sum[0]), sum_of_row(shared, p_sum[1])};
  const bool pairs = head_size % 2 == 0;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float scale = unnormalized ? pv_scale / fmax(all[r], 1.0f) : pv_scale;
    const int row = row0 + 8 * r;
    if (row >= end) continue;
    const size_t at = ((size_t)row * heads + head) * head_size;
#pragma unroll
    for (int n = 0; n < TILES_D; n++) {
      const int column = n * UNIT_N + 2 * t;
      const int2 sum = (r == 0 ? sums[n].lo : sums[n].hi) - v_bytes.zero * (int)all[r];
      if (column < head_size)
        store_pair(out, at + column, column + 1 < head_size, pairs, out_type,
                   convert_float2(sum) * scale, out_inv_scale, out_zero_point);
    }
  }
}
