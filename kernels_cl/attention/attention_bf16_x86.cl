// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in bf16 for x86 with AVX-512 BF16: online softmax over blocks of
// keys. The meaning is that of attention_f32_ref.cl with q, k and v in bf16, and with the
// exponentials of the softmax rounded to bf16 before they are summed and multiplied with v; all
// sums are f32.
//
// The lanes of a vector are 16 query rows; one instruction multiplies two values of each row by two
// of one key, so that maximum and sum need no work across lanes:
//   packed_q [d/2][rows][2]   of this block of rows
//   packed_k [keys][d/2][2]   keys as they lie, attended ones only
//   scores   [keys][rows]     f32, then the exponentials, bf16: [keys/2][rows][2]
//   packed_v [keys/2][d][2]   the values of two keys side by side
//
// A row whose keys are all masked is 0.
//
// Arguments: q, k, v  [tokens][stride] bf16, with strides and offsets in elements; out
// [tokens][heads * head_size] bf16; the rest as in attention_f32_ref.cl.
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1. Keys are packed once for
// all rows of a work-item: block_rows should be a multiple of 32, as large as leaves work for every
// core.
// Bounds: head_size even, <= HEAD_MAX; strides and offsets even. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef PACKED_KEYS
#define PACKED_KEYS 512  // keys packed at a time, a multiple of BLOCK_KEYS
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 128  // keys whose scores are held at a time, a multiple of 8
#endif
#define TILE 8   // keys or columns in one register tile: TILE * 2 sums
#define ROWS 32  // rows held at a time: two vectors
#define LANES 16
#include "persistent/place.clh"
#include "attention/attention.clh"
#include "units/bf16_x86.clh"

#define ONES 0x3f803f80  // 1, 1

// 2^x for x <= 0, relative error below 1.1e-4, a twentieth of that of a bf16; NaN for NaN, which
// the sum of the bits could lose.
static __attribute__((always_inline)) float16 exp2_approx(float16 x) {
  x = x < -126.0f ? (float16)(-126.0f) : x;
  const float16 shifted = x + ROUND;
  const float16 f = x - (shifted - ROUND);
  float16 p = fma(f, (float16)(5.5008960e-2f), (float16)(2.4221103e-1f));
  p = fma(f, p, (float16)(6.9328293e-1f));
  p = fma(f, p, (float16)(1.0f));
  return fma(x, (float16)(0.0f), as_float16(as_int16(p) + (as_int16(shifted) << 23)));
}

// Word i: the i-th value of `low`, then that of `high`, both > 0, rounded to nearest.
static __attribute__((always_inline)) int16 pair_words(float16 low, float16 high) {
  const uint16 a = as_uint16(low) + 0x8000, b = as_uint16(high) + 0x8000;
  return as_int16(a >> 16 | (b & 0xffff0000));
}

// Words of `count` keys (rows of k) one after the other.
static void copy_keys(__global const int* k, size_t stride, const int* keys, int count, int words,
                      int* packed) {
  for (int j = 0; j < count; j++, packed += words) {
    __global const int* source = k + keys[j] * stride;
    int i = 0;
    for (; i + 16 <= words; i += 16) *(Int16Any*)(packed + i) = vload16(0, source + i);
    for (; i < words; i++) packed[i] = source[i];
  }
}

// The values of two keys side by side; an odd last one is paired with itself, whose exponential is
// then 0.
static void pair_values(__global const ushort* v, int stride, const int* keys, int count,
                        int head_size, int* packed) {
  for (int j = 0; j < count; j += 2, packed += head_size) {
    __global const ushort* low = v + (size_t)keys[j] * stride;
    __global const ushort* high = v + (size_t)keys[min(j + 1, count - 1)] * stride;
    int d = 0;
    for (; d + 16 <= head_size; d += 16)
      *(Int16Any*)(packed + d) =
          convert_int16(vload16(0, low + d)) | convert_int16(vload16(0, high + d)) << 16;
    for (; d < head_size; d++) packed[d] = low[d] | high[d] << 16;
  }
}

ONE_ITEM KERNEL attention_bf16(ATTENTION_FLOAT_PARAMETERS(ushort) PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const Rows item = rows_of(PLACE, seq_offsets, block_rows);
  const int begin = item.begin, end = item.end, last = item.last;
  if (item.first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  out += head * head_size;

  int16 packed_q[HEAD_MAX / 2 * 2];
  int packed_k[PACKED_KEYS * (HEAD_MAX / 2)];
  int packed_v[PACKED_KEYS / 2 * HEAD_MAX];
  float16 scores[BLOCK_KEYS * 2];
  int16* exponentials = (int16*)scores;
  float16 result[HEAD_MAX * 2];  // [d][rows]
  int keys[PACKED_KEYS];         // row of each attended key

  const int words = head_size / 2;
  const float log2_scale = scale * M_LOG2E_F;
  int packed_from = -1, next = begin, count = 0;  // rows packed_from .. next - 1 are packed

  for (int row = item.first; row < last; row += ROWS) {
    const int rows = last - row;
    for (int h = 0; h < 2; h++)
      load_transposed((__global const int*)(q + (size_t)min(row + h * LANES, last - 1) * q_stride),
                      q_stride / 2, max(rows - h * LANES, 1), words, packed_q + h, 2);
    for (int i = 0; i < head_size * 2; i++) result[i] = 0.0f;
    float16 largest0 = -FLT_MAX, largest1 = -FLT_MAX, total0 = 0.0f, total1 = 0.0f;

    for (int from = begin; from < end; from = next) {
      if (packed_from != from) {
        packed_from = from;
        next = from;
        count = take_attended(key_mask, use_mask, &next, end, PACKED_KEYS, keys);
        copy_keys((__global const int*)k, k_stride / 2, keys, count, words, packed_k);
        pair_values(v, v_stride, keys, count, head_size, packed_v);
      }
      for (int block = 0; block < count; block += BLOCK_KEYS) {
        const int in_block = min(BLOCK_KEYS, count - block);
        float16 block0 = largest0, block1 = largest1;
        for (int j = 0; j < in_block; j += TILE) {
          float16 a0[TILE], a1[TILE];
          const int* key[TILE];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            key[t] =
                packed_k + min(block + j + t, count - 1) * words;  // the last tile repeats a key
            a0[t] = a1[t] = 0.0f;
          }
          for (int d = 0; d < words; d++) {
            const int16 q0 = packed_q[d * 2], q1 = packed_q[d * 2 + 1];
#pragma unroll
            for (int t = 0; t < TILE; t++) {
              const int16 x = key[t][d];
              DOT2(a0[t], x, q0);
              DOT2(a1[t], x, q1);
            }
          }
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            a0[t] *= log2_scale;
            a1[t] *= log2_scale;
            block0 = a0[t] > block0 ? a0[t] : block0;
            block1 = a1[t] > block1 ? a1[t] : block1;
            scores[(j + t) * 2] = a0[t];
            scores[(j + t) * 2 + 1] = a1[t];
          }
        }

        const Exp2 e = exp2_constants();
        const float16 old0 = exp2_negative(largest0 - block0, e),
                      old1 = exp2_negative(largest1 - block1, e);
        total0 *= old0;
        total1 *= old1;
        largest0 = block0;
        largest1 = block1;
        const int pairs = (in_block + 1) / 2;
        for (int j = 0; j < pairs; j++) {
          int16 p0 = pair_words(exp2_approx(scores[4 * j] - largest0),
                                exp2_approx(scores[4 * j + 2] - largest0));
          int16 p1 = pair_words(exp2_approx(scores[4 * j + 1] - largest1),
                                exp2_approx(scores[4 * j + 3] - largest1));
          if (2 * j + 1 == in_block) {  // an odd last key
            p0 &= 0xffff;
            p1 &= 0xffff;
          }
          const int16 ones = ONES;
          DOT2(total0, p0, ones);
          DOT2(total1, p1, ones);
          exponentials[2 * j] = p0;
          exponentials[2 * j + 1] = p1;
        }

        for (int d = 0; d < head_size; d += TILE) {
          float16 a0[TILE], a1[TILE];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const int column = min(d + t, head_size - 1);  // the last tile repeats a column
            a0[t] = result[column * 2] * old0;
            a1[t] = result[column * 2 + 1] * old1;
          }
          const int* value = packed_v + block / 2 * head_size + d;
          for (int j = 0; j < pairs; j++, value += head_size) {
            const int16 p0 = exponentials[2 * j], p1 = exponentials[2 * j + 1];
#pragma unroll
            for (int t = 0; t < TILE; t++) {
              const int16 x = value[t];
              DOT2(a0[t], p0, x);
              DOT2(a1[t], p1, x);
            }
          }
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            if (d + t >= head_size) break;
            result[(d + t) * 2] = a0[t];
            result[(d + t) * 2 + 1] = a1[t];
          }
        }
      }
    }

    const float16 inverse0 = total0 == 0.0f ? (float16)(0.0f) : 1.0f / total0;
    const float16 inverse1 = total1 == 0.0f ? (float16)(0.0f) : 1.0f / total1;
    int16* out_words = (int16*)result;  // [d/2][rows]
    for (int d = 0; d < words; d++) {
      const ushort16 even0 = to_bf16_v16(result[4 * d] * inverse0);
      const ushort16 even1 = to_bf16_v16(result[4 * d + 1] * inverse1);
      const ushort16 odd0 = to_bf16_v16(result[4 * d + 2] * inverse0);
      const ushort16 odd1 = to_bf16_v16(result[4 * d + 3] * inverse1);
      out_words[2 * d] = convert_int16(even0) | convert_int16(odd0) << 16;
      out_words[2 * d + 1] = convert_int16(even1) | convert_int16(odd1) << 16;
    }
    for (int h = 0; h < 2; h++)
      store_transposed((__global int*)(out + (size_t)(row + h * LANES) * heads * head_size),
                       (size_t)heads * words, rows - h * LANES, words, out_words + h, 2);
  }
}

MERGEABLE(attention_bf16, ATTENTION_FLOAT_ARGUMENTS)
