// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for CPUs without byte dot instructions. Same arguments and
// semantics as attention_s8_ref.cl; integer sums are exact.
//
// Products of centred bytes are at most 255 * 255, so f32 sums of 256 of them are exact: the kernel
// multiplies in f32 and needs no zero-point correction. The lanes of a vector are query rows:
//
//   query [d][rows]    q - q_zero_point            part [keys][d]  k - k_zero_point, then v - ...,
//                                                  of
//   scores [keys][rows]  sums, exponentials, then p                PART_KEYS keys at a time
//   result [d][rows]   s32, summed over the parts
//
// Up to BLOCK_KEYS keys every score is computed once; with more, a first pass over the blocks finds
// maximum and sum, and a second recomputes the scores.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1.
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of 2 * LANES. No unsafe math
// options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size, not above 256 (see above)
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 512  // keys whose scores are held at a time, a multiple of PART_KEYS
#endif
#define PART_KEYS 64  // keys whose bytes are held in f32 at a time, at most 256 (see above)
#include "persistent/place.clh"
#include "attention/attention.clh"
typedef floatv scorev;
#define score_to_f32(x) (x)
#define f32_to_score_bits(x) (x)
#define rounded_to_score(x) ((x) - ROUND)
#include "attention/attention_softmax.clh"
#if LANES == 16
#define TILE 8  // keys or columns in one register tile: TILE * 2 sums
#else
#define TILE 4
#endif
#define ROWS (2 * LANES)  // rows held at a time: two vectors

// Rows keys[0 .. count - 1] of k or v to part[key][d].
static void load_part(__global const uchar* source, int stride, const int* keys, int count,
                      int head_size, int type, int zero_point, float* part) {
  for (int j = 0; j < count; j++) {
    __global const uchar* row = source + (size_t)keys[j] * stride;
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(FloatvAny*)(part + j * head_size + d) =
          convert_floatv(load_centred(row + d, LANES, type, zero_point));
    for (; d < head_size; d++)
      part[j * head_size + d] = load_centred(row + d, 1, type, zero_point).s0;
  }
}

ONE_ITEM KERNEL attention_s8(ATTENTION_S8_PARAMETERS PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const Rows item = rows_of(PLACE, seq_offsets, block_rows);
  const int begin = item.begin, end = item.end, last = item.last;
  if (item.first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;

  floatv query[HEAD_MAX * 2];
  float part[PART_KEYS * HEAD_MAX + TILE];
  scorev scores[BLOCK_KEYS * 2];
  intv result[HEAD_MAX * 2];
  int keys[BLOCK_KEYS];  // row of each attended key of the block
  const float log2_scale = qk_scale * M_LOG2E_F;

  const int attended = count_attended(key_mask, use_mask, begin, end);
  const int blocks = (attended + BLOCK_KEYS - 1) / BLOCK_KEYS;
  const int steps = blocks > 1 ? 2 * blocks : blocks;

  for (int row = item.first; row < last; row += ROWS) {
    const int rows = last - row;
    for (int h = 0; h < 2; h++)
      for (int d = 0; d < head_size; d += LANES) {
        const int n = min(LANES, head_size - d);
        intv x[LANES];
#pragma unroll
        for (int r = 0; r < LANES; r++)
          x[r] = load_centred(q + (size_t)min(row + h * LANES + r, last - 1) * q_stride + d, n,
                              q_type, q_zero_point);
        transpose(x);
        for (int t = 0; t < n; t++) query[(d + t) * 2 + h] = convert_floatv(x[t]);
      }
    for (int i = 0; i < head_size * 2; i++) result[i] = 0;
    Softmax softmax = softmax_before(-FLT_MAX);
    intv p_sum0 = 0, p_sum1 = 0;

    for (int step = 0, next = begin; step < steps; step++) {
      if (step == blocks) next = begin;
      const int measure = step < blocks, finish = steps == blocks || !measure;
      const int count = take_attended(key_mask, use_mask, &next, end, BLOCK_KEYS, keys);

      scorev block0 = -FLT_MAX, block1 = -FLT_MAX;
      for (int start = 0; start < count; start += PART_KEYS) {
        const int known = min(PART_KEYS, count - start);
        load_part(k, k_stride, keys + start, known, head_size, k_type, k_zero_point, part);
        for (int j = 0; j < known; j += TILE) {
          floatv a0[TILE], a1[TILE];
          const float* key[TILE];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            key[t] =
                part + min(j + t, known - 1) * head_size;  // the last tile repeats the last key
            a0[t] = a1[t] = 0.0f;
          }
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
          for (int t = 0; t < TILE; t++) {
            if (score_inv_scale != 0.0f) {
              a0[t] = quantize_scores(a0[t], score_inv_scale, score_low, score_high);
              a1[t] = quantize_scores(a1[t], score_inv_scale, score_low, score_high);
            }
            block0 = a0[t] > block0 ? a0[t] : block0;
            block1 = a1[t] > block1 ? a1[t] : block1;
            scores[(start + j + t) * 2] = a0[t];
            scores[(start + j + t) * 2 + 1] = a1[t];
          }
        }
      }
      if (measure) grow_largest(&softmax, block0, block1, log2_scale);
      if (finish || !unnormalized) exponentiate_scores(&softmax, scores, count, log2_scale);
      if (step == blocks - 1) set_factors(&softmax, p_inv_scale, unnormalized);
      if (!finish) continue;

      for (int start = 0; start < count; start += PART_KEYS) {
        const int known = min(PART_KEYS, count - start);
        load_part(v, v_stride, keys + start, known, head_size, v_type, v_zero_point, part);
        floatv* p = scores + start * 2;
        for (int j = 0; j < known * 2; j += 2) {
          const intv p0 = quantize_probability(p[j], softmax.factor[0], p_max);
          const intv p1 = quantize_probability(p[j + 1], softmax.factor[1], p_max);
          p_sum0 += p0;
          p_sum1 += p1;
          p[j] = convert_floatv(p0);
          p[j + 1] = convert_floatv(p1);
        }
        for (int d = 0; d < head_size; d += TILE) {
          floatv a0[TILE], a1[TILE];
#pragma unroll
          for (int t = 0; t < TILE; t++) a0[t] = a1[t] = 0.0f;
          for (int j = 0; j < known; j++) {
            const float* value = part + j * head_size + d;
            const floatv p0 = p[j * 2], p1 = p[j * 2 + 1];
#pragma unroll
            for (int t = 0; t < TILE; t++) {
              const floatv x = value[t];
              a0[t] = fma(x, p0, a0[t]);
              a1[t] = fma(x, p1, a1[t]);
            }
          }
#pragma unroll
          for (int t = 0; t < TILE; t++)
            if (d + t < head_size) {
              result[(d + t) * 2] += convert_intv(a0[t]);
              result[(d + t) * 2 + 1] += convert_intv(a1[t]);
            }
        }
      }
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
