// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for x86 with AVX2. Same arguments and semantics as
// attention_s8_ref.cl; integer sums are exact.
//
// The lanes of a vector are query rows. Bytes are centred (their zero point is subtracted) and
// widened to 16 bits; pmaddwd multiplies pairs and adds them into 32 bits exactly:
//
//   packed_q [d/2][rows][2]   of this block of rows
//   packed_k [keys][d/2][2]   keys as they lie, attended ones only
//   scores   [keys][rows]     s32, then exponentials (f32), then [keys/2][rows][2] probabilities
//   packed_v [keys/2][d][2]   the values of two keys side by side
//
// The maximum is taken among integers, so no rounding happens before the exponential. A block is as
// many keys as fit the arrays; in a single one every score is computed once. With more, a first
// pass over the blocks finds maximum and sum, and a second recomputes the scores. With a bias or a
// window, scores are floats, held as their bits, and only keys in the windows of the rows at hand
// are scored.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1. Keys are packed once for
// all rows of a work-item: block_rows should be a multiple of 32, as large as leaves work for every
// core.
// Bounds: head_size <= HEAD_MAX. No unsafe math options. LANES 16 needs AVX-512 BW.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 4096  // keys of a block at most, a multiple of 8
#endif
#ifndef BLOCK_SHORTS
#define BLOCK_SHORTS (1024 * HEAD_MAX)  // of the keys of a block, and of values: 4096 keys of 64
#endif
#if !defined(LANES) && !defined(__AVX512BW__)
#define LANES 8
#endif
#include "persistent/place.clh"
#include "attention/attention.clh"
typedef intv scorev;
#define score_to_f32(x) convert_floatv(x)
#define f32_to_score_bits(x) as_intv(x)
#define rounded_to_score(x) (as_intv(x) - ROUND_BITS)
#include "attention/attention_softmax.clh"
#include "attention/attention_softmax_bias.clh"
#if LANES == 16
#define TILE 8  // keys or columns in one register tile: TILE * 2 sums
typedef short Shorts __attribute__((vector_size(64)));
#define PMADDWD __builtin_ia32_pmaddwd512
#else
#define TILE 4
typedef short Shorts __attribute__((vector_size(32)));
#define PMADDWD __builtin_ia32_pmaddwd256
#endif
#define ROWS (2 * LANES)  // rows held at a time: two vectors

// Sum of a pair of products for each lane.
static intv dot2(intv a, intv b) {
  return __builtin_astype(PMADDWD(__builtin_astype(a, Shorts), __builtin_astype(b, Shorts)), intv);
}

#define MULTIPLY_ADD(sum, p, x) (sum) += dot2(p, x)
#include "attention/attention_values.clh"

static intv pair(intv low, intv high) { return (low & 0xffff) | high << 16; }

// Up to LANES rows, from `row` on and at most `last`, to packed[d/2 * 2].
static void copy_queries(__global const uchar* q, int stride, int row, int last, int head_size,
                         int type, int zero_point, intv* packed) {
  for (int d = 0; d < head_size; d += LANES) {
    const int n = min(LANES, head_size - d);
    intv x[LANES];
#pragma unroll
    for (int r = 0; r < LANES; r++)
      x[r] = load_centred(q + (size_t)min(row + r, last) * stride + d, n, type, zero_point);
    transpose(x);
    for (int t = 0; t < n; t += 2)
      packed[d + t] = pair(x[t], t + 1 < n ? x[t + 1] : (intv)(0));
  }
}

// Rows keys[0 .. count - 1] of k to packed[key][d], an odd head filled with 0.
static void copy_keys(__global const uchar* k, int stride, const int* keys, int count,
                      int head_size, int type, int zero_point, short* packed) {
  for (int j = 0; j < count; j++, packed += (head_size + 1) & ~1) {
    __global const uchar* row = k + (size_t)keys[j] * stride;
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(ShortvAny*)(packed + d) =
          convert_shortv(load_centred(row + d, LANES, type, zero_point));
    for (; d < head_size; d++) packed[d] = load_centred(row + d, 1, type, zero_point).s0;
    if (head_size & 1) packed[head_size] = 0;
  }
}

// Rows keys[0 .. count - 1] of v; an odd count repeats the last, whose probability is 0 there.
static void copy_values(__global const uchar* v, int stride, const int* keys, int count,
                        int head_size, int type, int zero_point, int* packed) {
  for (int j = 0; j < count; j += 2, packed += head_size) {
    __global const uchar* low = v + (size_t)keys[j] * stride;
    __global const uchar* high = v + (size_t)keys[min(j + 1, count - 1)] * stride;
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(IntvAny*)(packed + d) = pair(load_centred(low + d, LANES, type, zero_point),
                                     load_centred(high + d, LANES, type, zero_point));
    for (; d < head_size; d++)
      packed[d] = pair(load_centred(low + d, 1, type, zero_point),
                       load_centred(high + d, 1, type, zero_point)).s0;
  }
}

ONE_ITEM KERNEL attention_s8(ATTENTION_S8_PARAMETERS PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const Rows item = rows_of(PLACE, seq_offsets, block_rows);
  const int last = item.last;
  if (item.first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, item.begin);

  intv packed_q[HEAD_MAX / 2 * 2];
  short packed_k[BLOCK_SHORTS];
  int packed_v[BLOCK_SHORTS / 2];
  intv scores[BLOCK_KEYS * 2];
  intv result[HEAD_MAX * 2];
  int keys[BLOCK_KEYS];   // row of each attended key of the block

  const int groups = (head_size + 1) / 2;
  const int block_keys = min(BLOCK_KEYS, BLOCK_SHORTS / 2 / groups / 8 * 8);
  const float log2_scale = qk_scale * M_LOG2E_F;
  const int has_bias = bias || window, last_place = item.end - 1 - item.begin;

  RowsOfKeys held = {item.first, 0, 0, 0};
  int blocks = 0, packed = -1, packed_count = 0, next = 0;

  for (int row = item.first; row < last; row += ROWS) {
    if (row >= held.last) {
      held = next_rows(item, row, window, block_keys, ROWS, 1, key_mask, use_mask);
      blocks = (held.attended + block_keys - 1) / block_keys;
      packed = -1;
    }
    const int rows = last - row, steps = blocks > 1 ? 2 * blocks : blocks;
    for (int h = 0; h < 2; h++)
      copy_queries(q, q_stride, row + h * LANES, last - 1, head_size, q_type, q_zero_point,
                   packed_q + h);
    for (int i = 0; i < head_size * 2; i++) result[i] = 0;
    Softmax softmax = softmax_before(INT_MIN);
    LargestSum sums = largest_sum_before();
    intv p_sum0 = 0, p_sum1 = 0;

    for (int step = 0; step < steps; step++) {
      const int block = step < blocks ? step : step - blocks;
      const int measure = step < blocks, finish = steps == blocks || !measure;
      if (packed != block) {
        if (block == 0) next = held.begin;
        packed_count = take_attended(key_mask, use_mask, &next, held.end, block_keys, keys);
        copy_keys(k, k_stride, keys, packed_count, head_size, k_type, k_zero_point, packed_k);
        copy_values(v, v_stride, keys, packed_count, head_size, v_type, v_zero_point, packed_v);
        packed = block;
      }

      const KeySpan span = keys_in_window(keys, packed_count, window, row, row + ROWS - 1, TILE);
      const int count = span.count;
      if (has_bias)
        load_bias(added, window, row - item.begin, last_place, keys + span.first, item.begin,
                  count, (count + TILE - 1) / TILE * TILE, (floatv*)scores);
      intv block0 = INT_MIN, block1 = INT_MIN;
      floatv largest0 = -FLT_MAX, largest1 = -FLT_MAX;  // with a bias
      for (int j = 0; j < count; j += TILE) {
        intv a0[TILE], a1[TILE];
        const short* key[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          const int known = min(j + t, count - 1);  // the last tile repeats the last key
          key[t] = packed_k + (span.first + known) * groups * 2;
          a0[t] = a1[t] = 0;
        }
        for (int d = 0; d < groups; d++) {
          const intv q0 = packed_q[d * 2], q1 = packed_q[d * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const intv x = as_int(vload2(d, key[t]));
            a0[t] += dot2(x, q0);
            a1[t] += dot2(x, q1);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          if (score_inv_scale != 0.0f) {
            a0[t] = quantize_scores(a0[t], score_inv_scale, score_low, score_high);
            a1[t] = quantize_scores(a1[t], score_inv_scale, score_low, score_high);
          }
          if (has_bias) {
            const floatv s0 = fma(convert_floatv(a0[t]), (floatv)(qk_scale),
                                  as_floatv(scores[(j + t) * 2]));
            const floatv s1 = fma(convert_floatv(a1[t]), (floatv)(qk_scale),
                                  as_floatv(scores[(j + t) * 2 + 1]));
            largest0 = s0 > largest0 ? s0 : largest0;
            largest1 = s1 > largest1 ? s1 : largest1;
            a0[t] = as_intv(s0);
            a1[t] = as_intv(s1);
          }
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

      if (count & 1) scores[count * 2] = scores[count * 2 + 1] = 0;
      const int key_groups = (count + 1) / 2;
      for (int g = 0; g < key_groups; g++) {
        const intv* e = scores + g * 4;
        const intv p0 = pair(quantize_probability(as_floatv(e[0]), softmax.factor[0], p_max),
                             quantize_probability(as_floatv(e[2]), softmax.factor[0], p_max));
        const intv p1 = pair(quantize_probability(as_floatv(e[1]), softmax.factor[1], p_max),
                             quantize_probability(as_floatv(e[3]), softmax.factor[1], p_max));
        const intv ones = 0x00010001;
        p_sum0 += dot2(p0, ones);
        p_sum1 += dot2(p1, ones);
        scores[g * 2] = p0;
        scores[g * 2 + 1] = p1;
      }
      add_values(scores, packed_v + span.first / 2 * head_size, key_groups, head_size, result);
    }

    const floatv scale0 = result_scale(p_sum0, pv_scale, unnormalized);
    const floatv scale1 = result_scale(p_sum1, pv_scale, unnormalized);
    for (int i = 0; i < head_size * 2; i++)
      result[i] = finish_column(convert_floatv(result[i]) * (i & 1 ? scale1 : scale0), out_type,
                                out_inv_scale, out_zero_point);
    store_rows(out, row, rows, head, heads, head_size, out_type, result);
  }
}

MERGEABLE(attention_s8, ATTENTION_S8_ARGUMENTS)
