// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in bf16 for x86 with AVX-512 BF16: attention_float_cpu.clh with q,
// k, v and out in bf16, and with the exponentials of the softmax rounded to bf16 before they are
// summed and multiplied with v; all sums are f32. One instruction multiplies two values of each of
// 16 rows by two of one key:
//
//   queries  [d/2][rows][2]
//   keys     [keys][d/2][2]
//   scores   [keys][rows]     f32, then the exponentials, bf16: [keys/2][rows][2]
//   values   [keys/2][d][2]   the values of two keys side by side
//
// Bounds: head_size even, <= HEAD_MAX; strides and offsets even; block_rows should be a multiple of
// 32. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 128  // keys whose scores are held at a time, a multiple of TILE
#endif
#ifndef CACHED_KEYS
#define CACHED_KEYS 512  // keys packed at a time, a multiple of BLOCK_KEYS
#endif
#define CACHED_WORDS (CACHED_KEYS * (HEAD_MAX / 2))
#define ATTENTION attention_bf16
#define LANES 16
#define GROUP 2
#define ONES 0x3f803f80
#include "persistent/place.clh"
#include "attention/attention.clh"
#include "units/bf16_x86.clh"
typedef ushort Element;
typedef int Word;
typedef int16 wordv;
#define MULTIPLY_ADD DOT2

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

// ROWS rows from `row` on; those after `last` repeat it.
static void pack_queries(__global const ushort* q, int stride, int row, int last, int head_size,
                         float log2_scale, int16* words) {
  for (int h = 0; h < 2; h++, row += LANES)
    load_transposed((__global const int*)(q + (size_t)min(row, last) * stride), stride / 2,
                    max(last + 1 - row, 1), head_size / 2, words + h, 2);
}

// Two keys, one after the other.
static void pack_keys(__global const ushort* k, int stride, const int* keys, int head_size,
                      int* words) {
  const int groups = head_size / 2;
  for (int j = 0; j < 2; j++, words += groups) {
    __global const int* row = (__global const int*)(k + (size_t)keys[j] * stride);
    int i = 0;
    for (; i + 16 <= groups; i += 16) *(Int16Any*)(words + i) = vload16(0, row + i);
    for (; i < groups; i++) words[i] = row[i];
  }
}

// The values of two keys side by side.
static void pack_values(__global const ushort* v, int stride, const int* keys, int head_size,
                        int* words) {
  __global const ushort* low = v + (size_t)keys[0] * stride;
  __global const ushort* high = v + (size_t)keys[1] * stride;
  int d = 0;
  for (; d + 16 <= head_size; d += 16)
    *(Int16Any*)(words + d) =
        convert_int16(vload16(0, low + d)) | convert_int16(vload16(0, high + d)) << 16;
  for (; d < head_size; d++) words[d] = low[d] | high[d] << 16;
}

static float16 exponent_of(float16 sum, float log2_scale) { return sum * log2_scale; }

static __attribute__((always_inline)) int16 exponentiate_group(const float16* scores,
                                                               float16 largest, int present,
                                                               Exp2 unused) {
  const int16 pair =
      pair_words(exp2_approx(scores[0] - largest), exp2_approx(scores[2] - largest));
  return present < 2 ? pair & 0xffff : pair;
}

// Columns d and d + 1 of a vector of rows, two vectors apart, as words.
static __attribute__((always_inline)) int16 to_words(const float16* column, float16 factor) {
  return convert_int16(to_bf16_v16(column[0] * factor)) |
         convert_int16(to_bf16_v16(column[2] * factor)) << 16;
}

static void store_floats(float16* result, float16 factor0, float16 factor1, int rows,
                         int head_size, int stride, __global ushort* out) {
  int16* words = (int16*)result;  // [d/2][rows][2]
  for (int d = 0; d < head_size; d += 2) {
    const int16 words0 = to_words(result + d * 2, factor0);
    words[d + 1] = to_words(result + d * 2 + 1, factor1);
    words[d] = words0;
  }
  for (int h = 0; h < 2; h++)
    store_transposed((__global int*)(out + (size_t)h * LANES * stride), stride / 2,
                     rows - h * LANES, head_size / 2, words + h, 2);
}

#include "attention/attention_float_cpu.clh"
MERGEABLE(attention_bf16, ATTENTION_FLOAT_ARGUMENTS)
