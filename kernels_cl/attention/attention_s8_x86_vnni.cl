// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for x86 with AVX-512 VNNI: attention_s8_cpu.clh with 16
// rows in the lanes. One dot instruction multiplies four bytes of each by four bytes of a key:
//
//   queries  [d/4][rows][4]   s8
//   keys     [keys][d/4][4]   u8
//   scores   [keys][rows]     f32, then exponentials, then u8 probabilities: [keys/4][rows][4]
//   values   [keys/4][d][4]   s8
//
// Bytes of the other type have their sign shifted. Zero points: with q' = q (s8) and k' = k (u8)
// after that, z and z' their zero points,
//   sum (q' - z)(k' - z') = sum q' k' - z * sum k' + z z' d - z' * sum q'
//
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of 32. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 4096  // keys of a block at most, a multiple of 8
#endif
#ifndef BLOCK_WORDS
#define BLOCK_WORDS (256 * HEAD_MAX)  // of the keys of a block, and of values: 4096 keys of 64
#endif
#define LANES 16
#define GROUP 4
#define ONES 0x01010101
#define PREFETCH_ROWS 1
#include "persistent/place.clh"
#include "attention/attention.clh"
#include "units/vnni.clh"
typedef int Word;
typedef int16 wordv;
#define MULTIPLY_ADD DOT4_EVEX

typedef struct {
  int16 words[HEAD_MAX / 4 * 2];
  int16 base[2];  // what zero points add to the sums of a row
} Queries;

typedef struct {
  int words[BLOCK_WORDS];
  int base[BLOCK_KEYS];  // likewise of a key
} Keys;

static __attribute__((always_inline)) int16 first_sum(const Queries* queries, const Keys* keys,
                                                      int key, int h) {
  return keys->base[key] + queries->base[h];
}

// The bit that makes a u8 an s8 less 128, or an s8 a u8 plus 128.
static int flip_to_s8(Operand x) { return x.type == TYPE_U8 ? 0x80 : 0; }
static int flip_to_u8(Operand x) { return x.type == TYPE_S8 ? 0x80 : 0; }
static int zero_of_packed(Operand v) { return v.zero_point - flip_to_s8(v); }

// Bytes i .. i + 3 of a row, 0 from `size` on.
static int load_group(__global const uchar* row, int i, int size) {
  if (i + 4 <= size) return as_int(vload4(0, row + i));
  uchar4 bytes = 0;
  for (int t = 0; i + t < size; t++) ((uchar*)&bytes)[t] = row[i + t];
  return as_int(bytes);
}

// ROWS rows from `row` on; those after `last` repeat it. Past head_size are zeros.
static void pack_queries(Operand q, Operand k, int row, int last, int head_size,
                         Queries* packed) {
  const int groups = (head_size + 3) / 4;
  const int by_words = (((size_t)q.bytes | q.stride | head_size) & 3) == 0;
  for (int h = 0; h < 2; h++) {
    const int first = row + h * LANES;
    int16* words = packed->words + h;
    if (by_words) {
      load_transposed((__global const int*)row_of(q, min(first, last)), q.stride / 4,
                      max(last + 1 - first, 1), groups, words, 2);
    } else {
      for (int r = 0; r < LANES; r++)
        for (int g = 0; g < groups; g++)
          ((int*)(words + g * 2))[r] =
              load_group(row_of(q, min(first + r, last)), g * 4, head_size);
    }
  }
  const int flip = flip_to_s8(q), flips = (int)((uint)flip * ONES);
  const int last_flips = (uint)flips >> 8 * (groups * 4 - head_size);  // past head_size none
  const int16 ones = ONES;
  int16 sum[2] = {0, 0};
  for (int g = 0; g < groups; g++) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      packed->words[g * 2 + h] ^= g + 1 < groups ? flips : last_flips;
      MULTIPLY_ADD(sum[h], ones, packed->words[g * 2 + h]);
    }
  }
  const int q_zero = q.zero_point - flip, k_zero = k.zero_point + flip_to_u8(k);
  for (int h = 0; h < 2; h++) packed->base[h] = head_size * q_zero * k_zero - k_zero * sum[h];
}

// Rows keys[0 .. count - 1] of k.
static void pack_keys(Operand q, Operand k, const int* keys, int count, int head_size,
                      Keys* packed) {
  const int groups = (head_size + 3) / 4, q_zero = q.zero_point - flip_to_s8(q);
  const uchar flip = flip_to_u8(k);
  int* words = packed->words;
  for (int j = 0; j < count; j++, words += groups) {
    __global const uchar* row = row_of(k, keys[j]);
    int16 sum = 0;
    int g = 0;
    for (; g * 4 + 16 <= head_size; g += 4) {
      const uchar16 bytes = vload16(0, row + g * 4) ^ flip;
      vstore4(as_int4(bytes), 0, words + g);
      sum += convert_int16(bytes);
    }
    for (; g < groups; g++) {  // what is past head_size meets zeros of the query
      for (int i = g * 4; i < min(g * 4 + 4, head_size); i++) sum.s0 += row[i] ^ flip;
      words[g] = load_group(row, g * 4, head_size) ^ (int)((uint)flip * ONES);
    }
    const int8 sum8 = sum.lo + sum.hi;
    const int4 sum4 = sum8.lo + sum8.hi;
    packed->base[j] = -q_zero * (sum4.x + sum4.y + sum4.z + sum4.w);
  }
}

// Rows keys[0 .. count - 1] of v; keys goes on to the end of the last group, where probabilities
// are 0.
static void pack_values(Operand v, const int* keys, int count, int head_size, int* words) {
  const uchar flip = flip_to_s8(v);
  for (int j = 0; j < count; j += 4, words += head_size) {
    __global const uchar* row[4];
#pragma unroll
    for (int t = 0; t < 4; t++) row[t] = row_of(v, keys[j + t]);
    int d = 0;
    for (; d + 16 <= head_size; d += 16) {
      int16 bytes = convert_int16(vload16(0, row[0] + d) ^ flip);
#pragma unroll
      for (int t = 1; t < 4; t++) bytes |= convert_int16(vload16(0, row[t] + d) ^ flip) << (8 * t);
      *(IntvAny*)(words + d) = bytes;
    }
    for (; d < head_size; d++)
      words[d] = as_int((uchar4)(row[0][d], row[1][d], row[2][d], row[3][d]) ^ flip);
  }
}

// The exponentials (>= 0) of four keys, two vectors apart; p_max is at most 255. As rounding leaves
// them they are ROUND_BITS more, which shifts move out of the words of the last two keys.
static __attribute__((always_inline)) int16 quantize_group(const float16* exponentials,
                                                           float16 factor, int p_max) {
  const float limit = p_max + ROUND;
  int16 bits[4];
#pragma unroll
  for (int t = 0; t < 4; t++) {
    const float16 p = fma(exponentials[t * 2], factor, (float16)(ROUND));
    bits[t] = as_int16(p < limit ? p : (float16)(limit));
  }
  return bits[0] + (bits[1] << 8) + (bits[2] << 16) + (bits[3] << 24) -
         (int)((uint)ROUND_BITS + ((uint)ROUND_BITS << 8));
}

#include "attention/attention_s8_cpu.clh"
MERGEABLE(attention_s8, ATTENTION_S8_ARGUMENTS)
