// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for x86 with AVX-512 VNNI. Same arguments and semantics as
// attention_s8_ref.cl; integer sums are exact. The lanes of a vector are 16 query rows; one dot
// instruction multiplies four bytes of each row by four bytes of one key, so that maximum, sum and
// quantization of the softmax need no work across lanes:
//   packed_q [d/4][rows][4]   s8, of this block of rows
//   packed_k [keys][d/4][4]   u8: keys as they lie, attended ones only, each sign-shifted if s8;
//                             the last key fills the last tile
//   scores   [keys][rows]     s32, then exponentials (f32), then [keys/4][rows][4] u8 probabilities
//   packed_v [keys/4][d][4]   s8: the bytes of four keys side by side
//
// Zero points: with q' = q (s8) and k' = k (u8) after the sign shift, z = zero point of q',
//   sum (q - zq)(k - zk) = sum q' k' - z * sum k' + terms of the row alone, which softmax cancels
// unless scores are quantized: base_of_row, with the zero point z' of k', is z z' d - z' * sum q'.
// The maximum is taken among integers, so no rounding happens before the exponential. A block is as
// many keys as fit the arrays; in a single one every score is computed once. With more, a first
// pass over the blocks finds maximum and sum, and a second recomputes the scores. With a bias or a
// window, scores are floats, held as their bits, and only keys in the windows of the rows at hand
// are scored.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1. Keys are packed once for
// all rows of a work-item: block_rows should be a multiple of 32, as large as leaves work for every
// core.
// Bounds: head_size <= HEAD_MAX. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 4096  // keys of a block at most, a multiple of TILE
#endif
#ifndef BLOCK_BYTES
#define BLOCK_BYTES (1024 * HEAD_MAX)  // of the keys of a block, and of values: 4096 keys of 64
#endif
#define TILE 8   // keys or columns in one register tile: TILE * 2 sums
#if BLOCK_KEYS % TILE
#error "BLOCK_KEYS is not a multiple of TILE"
#endif
#define ROWS 32  // rows held at a time: two vectors
#define LANES 16
#include "persistent/place.clh"
#include "attention/attention.clh"
#include "units/prefetch.clh"
// A row of one head is a line or two, a stride after the one before it, which no cache expects.
#define PREFETCH_ROW(row) prefetch_lines((size_t)(row), 1)
typedef intv scorev;
#define score_to_f32(x) convert_floatv(x)
#define f32_to_score_bits(x) as_intv(x)
#define rounded_to_score(x) (as_intv(x) - ROUND_BITS)
#include "attention/attention_softmax.clh"
#include "attention/attention_softmax_bias.clh"
#include "attention/attention_dot4.clh"

// acc += the four products of each lane: a unsigned bytes, b signed bytes.
#define VPDPBUSD(acc, a, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b))
#define MULTIPLY_ADD VPDPBUSD
#include "attention/attention_values.clh"

ONE_ITEM KERNEL attention_s8(ATTENTION_S8_PARAMETERS PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const Rows item = rows_of(PLACE, seq_offsets, block_rows);
  const int last = item.last;
  if (item.first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, item.begin);

  int16 packed_q[HEAD_MAX / 4 * 2];
  int packed_k[BLOCK_BYTES / 4];
  int packed_v[BLOCK_BYTES / 4];
  int16 scores[BLOCK_KEYS * 2];
  int16 result[HEAD_MAX * 2];
  int base_of_key[BLOCK_KEYS];  // the sum of the bytes of each key, then -z times that
  int keys[BLOCK_KEYS];         // row of each attended key of the block

  const int groups = (head_size + 3) / 4;
  const int block_keys = min(BLOCK_KEYS, BLOCK_BYTES / 4 / groups / TILE * TILE);
  const uchar q_flip = q_type == TYPE_U8 ? 0x80 : 0;
  const uchar k_flip = k_type == TYPE_S8 ? 0x80 : 0;
  const uchar v_flip = v_type == TYPE_U8 ? 0x80 : 0;
  const int q_zero = q_zero_point - q_flip, v_zero = v_zero_point - v_flip;
  // Quantized scores need the terms of the row, too; groups are filled with zeros before the shift.
  const int k_zero = k_zero_point + k_flip, fill = groups * 4 - head_size;
  const int q_fill = -(int)q_flip, k_fill = k_flip;
  const int by_words = (head_size & 3) == 0 && ((q_stride | q_offset) & 3) == 0;
  const float log2_scale = qk_scale * M_LOG2E_F;
  const float p_limit = p_max + ROUND;
  const int has_bias = bias || window, last_place = item.end - 1 - item.begin;
  const int has_whole_scores = has_bias || score_inv_scale != 0.0f;

  RowsOfKeys held = {item.first, 0, 0, 0};
  int blocks = 0, packed = -1, packed_count = 0, next = 0;

  for (int row = item.first; row < last; row += ROWS) {
    if (row >= held.last) {
      held = next_rows(item, row, window, block_keys, ROWS, 1, key_mask, use_mask);
      blocks = (held.attended + block_keys - 1) / block_keys;
      packed = -1;
    }
    const int rows = last - row, steps = blocks > 1 ? 2 * blocks : blocks;
    for (int r = row + ROWS; r < min(row + 2 * ROWS, last); r++)
      PREFETCH_ROW(q + (size_t)r * q_stride);
    for (int h = 0; h < 2; h++)
      copy_queries(q + (size_t)min(row + h * LANES, last - 1) * q_stride, q_stride,
                   max(rows - h * LANES, 1), head_size, by_words, q_flip, packed_q + h, 2);
    for (int i = 0; i < head_size * 2; i++) result[i] = 0;
    int16 base_of_row[2];
    for (int h = 0; h < 2 && has_whole_scores; h++) {
      int16 sum = -fill * q_fill;
      for (int d = 0; d < groups; d++) {
        const int16 ones = 0x01010101;
        VPDPBUSD(sum, ones, packed_q[d * 2 + h]);
      }
      base_of_row[h] = head_size * q_zero * k_zero - fill * q_fill * k_fill - k_zero * sum;
    }
    Softmax softmax = softmax_before(INT_MIN);
    LargestSum sums = largest_sum_before();
    int16 p_sum0 = 0, p_sum1 = 0;

    for (int step = 0; step < steps; step++) {
      const int block = step < blocks ? step : step - blocks;
      const int measure = step < blocks, finish = steps == blocks || !measure;
      if (packed != block) {
        if (block == 0) next = held.begin;
        const int count = packed_count =
            take_attended(key_mask, use_mask, &next, held.end, block_keys, keys);
        for (int j = 0; j < count; j++) {
          PREFETCH_ROW(k + (size_t)keys[j] * k_stride);
          PREFETCH_ROW(v + (size_t)keys[j] * v_stride);
        }
        // A tile past the last key repeats it; with a bias or a window it counts nothing there.
        const int filled = (count + TILE - 1) / TILE * TILE;
        for (int j = count; j < filled; j++) keys[j] = keys[count - 1];
        copy_keys(k, k_stride, keys, filled, head_size, k_flip, packed_k, base_of_key);
        for (int j = 0; j < filled; j++) base_of_key[j] *= -q_zero;
        copy_values(v, v_stride, keys, count, head_size, v_flip, packed_v);
        packed = block;
      }

      const KeySpan span = keys_in_window(keys, packed_count, window, row, row + ROWS - 1, TILE);
      const int count = span.count;
      if (has_bias)
        load_bias(added, window, row - item.begin, last_place, keys + span.first, item.begin, count,
                  (count + TILE - 1) / TILE * TILE, (floatv*)scores);
      int16 block0 = INT_MIN, block1 = INT_MIN;
      floatv largest0 = -FLT_MAX, largest1 = -FLT_MAX;  // with a bias
      for (int j = 0; j < count; j += TILE) {
        int16 a0[TILE], a1[TILE];
        const int* key = packed_k + (span.first + j) * groups;
#pragma unroll
        for (int t = 0; t < TILE; t++) a0[t] = a1[t] = base_of_key[span.first + j + t];
        for (int d = 0; d < groups; d++) {
          const int16 q0 = packed_q[d * 2], q1 = packed_q[d * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const int16 x = key[t * groups + d];
            VPDPBUSD(a0[t], x, q0);
            VPDPBUSD(a1[t], x, q1);
          }
        }
        if (has_whole_scores) {
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            a0[t] += base_of_row[0];
            a1[t] += base_of_row[1];
          }
        }
        if (score_inv_scale != 0.0f) {
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            a0[t] = quantize_scores(a0[t], score_inv_scale, score_low, score_high);
            a1[t] = quantize_scores(a1[t], score_inv_scale, score_low, score_high);
          }
        }
        if (has_bias) {
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv s0 =
                fma(convert_floatv(a0[t]), (floatv)(qk_scale), as_floatv(scores[(j + t) * 2]));
            const floatv s1 =
                fma(convert_floatv(a1[t]), (floatv)(qk_scale), as_floatv(scores[(j + t) * 2 + 1]));
            largest0 = s0 > largest0 ? s0 : largest0;
            largest1 = s1 > largest1 ? s1 : largest1;
            a0[t] = as_intv(s0);
            a1[t] = as_intv(s1);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          block0 = a0[t] > block0 ? a0[t] : block0;
          block1 = a1[t] > block1 ? a1[t] : block1;
          scores[(j + t) * 2] = a0[t];
          scores[(j + t) * 2 + 1] = a1[t];
        }
      }
      if (has_bias) {
        if (measure) grow_largest_sum(&sums, &softmax, largest0, largest1);
        if (finish || !unnormalized) exponentiate_sums(&sums, &softmax, scores, count);
        if (step == blocks - 1) set_factors_of_sums(&softmax, p_inv_scale, unnormalized);
      } else {
        if (measure) grow_largest(&softmax, block0, block1, log2_scale);
        if (finish || !unnormalized) exponentiate_scores(&softmax, scores, count, log2_scale);
        if (step == blocks - 1) set_factors(&softmax, p_inv_scale, unnormalized);
      }
      if (!finish) continue;

      for (int j = count; j < ((count + 3) & ~3); j++) scores[j * 2] = scores[j * 2 + 1] = 0;
      const int key_groups = (count + 3) / 4;
      for (int g = 0; g < key_groups; g++) {
        const int16* exponentials = scores + g * 8;
        const int16 p0 = quantize_four(exponentials, softmax.factor[0], p_limit);
        const int16 p1 = quantize_four(exponentials + 1, softmax.factor[1], p_limit);
        const int16 ones = 0x01010101;
        VPDPBUSD(p_sum0, p0, ones);
        VPDPBUSD(p_sum1, p1, ones);
        scores[g * 2] = p0;
        scores[g * 2 + 1] = p1;
      }
      add_values(scores, packed_v + span.first / 4 * head_size, key_groups, head_size, result);
    }

    const int16 base0 = p_sum0 * v_zero, base1 = p_sum1 * v_zero;
    const float16 scale0 = result_scale(p_sum0, pv_scale, unnormalized);
    const float16 scale1 = result_scale(p_sum1, pv_scale, unnormalized);
    for (int d = 0; d < head_size; d++) {
      result[d * 2] = finish_column(convert_float16(result[d * 2] - base0) * scale0, out_type,
                                    out_inv_scale, out_zero_point);
      result[d * 2 + 1] = finish_column(convert_float16(result[d * 2 + 1] - base1) * scale1,
                                        out_type, out_inv_scale, out_zero_point);
    }
    store_rows(out, row, rows, head, heads, head_size, out_type, result);
  }
}

MERGEABLE(attention_s8, ATTENTION_S8_ARGUMENTS)
