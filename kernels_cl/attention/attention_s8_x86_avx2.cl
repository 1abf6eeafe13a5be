// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for x86 with AVX2: attention_s8_cpu.clh with bytes that are
// centred (their zero point is subtracted) and widened to 16 bits. pmaddwd multiplies pairs and
// adds them into 32 bits exactly:
//
//   queries  [d/2][rows][2]
//   keys     [keys][d/2][2]
//   scores   [keys][rows]     f32, then exponentials, then probabilities: [keys/2][rows][2]
//   values   [keys/2][d][2]
//
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of 2 * LANES. No unsafe math
// options. LANES 16 needs AVX-512 BW.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 4096  // keys of a block at most, a multiple of 8
#endif
#ifndef BLOCK_WORDS
#define BLOCK_WORDS (512 * HEAD_MAX)  // of the keys of a block, and of values: 4096 keys of 64
#endif
#if !defined(LANES) && !defined(__AVX512BW__)
#define LANES 8
#endif
#define GROUP 2
#define ONES 0x00010001
#include "persistent/place.clh"
#include "attention/attention.clh"
#if LANES == 16
typedef short Shorts __attribute__((vector_size(64)));
#define PMADDWD __builtin_ia32_pmaddwd512
#else
typedef short Shorts __attribute__((vector_size(32)));
#define PMADDWD __builtin_ia32_pmaddwd256
#endif
typedef int Word;
typedef intv wordv;

// Sum of a pair of products for each lane.
static intv dot2(intv a, intv b) {
  return __builtin_astype(PMADDWD(__builtin_astype(a, Shorts), __builtin_astype(b, Shorts)), intv);
}
#define MULTIPLY_ADD(sum, a, b) (sum) += dot2(a, b)

typedef struct {
  intv words[HEAD_MAX / 2 * 2];
} Queries;

typedef struct {
  int words[BLOCK_WORDS];
} Keys;

// No zero point is left in the words.
static intv first_sum(const Queries* queries, const Keys* keys, int key, int h) { return 0; }
static int zero_of_packed(Operand v) { return 0; }

static intv pair(intv low, intv high) { return (low & 0xffff) | high << 16; }

// ROWS rows from `row` on; those after `last` repeat it.
static void pack_queries(Operand q, Operand k, int row, int last, int head_size,
                         Queries* packed) {
  for (int h = 0; h < 2; h++, row += LANES)
    for (int d = 0; d < head_size; d += LANES) {
      const int n = min(LANES, head_size - d);
      intv x[LANES];
      load_centred_rows(q, row, last, d, n, x);
      for (int t = 0; t < n; t += 2)
        packed->words[d + t + h] = pair(x[t], t + 1 < n ? x[t + 1] : (intv)(0));
    }
}

// Rows keys[0 .. count - 1] of k, an odd head filled with 0.
static void pack_keys(Operand q, Operand k, const int* keys, int count, int head_size,
                      Keys* packed) {
  int* words = packed->words;
  for (int j = 0; j < count; j++, words += (head_size + 1) / 2) {
    __global const uchar* row = row_of(k, keys[j]);
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(ShortvAny*)(words + d / 2) =
          convert_shortv(load_centred(row + d, LANES, k.type, k.zero_point));
    for (; d < head_size; d += 2) {
      const intv last = load_centred(row + d, min(2, head_size - d), k.type, k.zero_point);
      words[d / 2] = pair(last, d + 1 < head_size ? last.s1 : 0).s0;
    }
  }
}

// Rows keys[0 .. count - 1] of v; an odd count repeats the last, whose probability is 0 there.
static void pack_values(Operand v, const int* keys, int count, int head_size, int* words) {
  for (int j = 0; j < count; j += 2, words += head_size) {
    __global const uchar* low = row_of(v, keys[j]);
    __global const uchar* high = row_of(v, keys[min(j + 1, count - 1)]);
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(IntvAny*)(words + d) = pair(load_centred(low + d, LANES, v.type, v.zero_point),
                                    load_centred(high + d, LANES, v.type, v.zero_point));
    for (; d < head_size; d++)
      words[d] = pair(load_centred(low + d, 1, v.type, v.zero_point),
                      load_centred(high + d, 1, v.type, v.zero_point)).s0;
  }
}

// The exponentials (>= 0) of two keys, two vectors apart.
static intv quantize_group(const floatv* exponentials, floatv factor, int p_max) {
  return pair(quantize_probability(exponentials[0], factor, p_max),
              quantize_probability(exponentials[2], factor, p_max));
}

#include "attention/attention_s8_cpu.clh"
MERGEABLE(attention_s8, ATTENTION_S8_ARGUMENTS)
