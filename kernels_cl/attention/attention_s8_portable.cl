// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for CPUs without byte dot instructions:
// attention_s8_cpu.clh with bytes that are centred (their zero point is subtracted) and multiplied
// in f32. Products are at most 255 * 255, so sums of 256 of them are exact:
//
//   queries  [d][rows]
//   keys     [keys][d]
//   scores   [keys][rows]   f32, then exponentials, then probabilities
//   values   [keys][d]
//
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of 2 * LANES. No unsafe math
// options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size, not above 256 (see above)
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 512  // keys of a block at most, a multiple of 8
#endif
#ifndef BLOCK_WORDS
#define BLOCK_WORDS (1 << 15)  // of the keys of a block, and of values: 512 keys of 64
#endif
#define EXACT_GROUPS 256  // see above
#define GROUP 1
#define ONES 1.0f
#include "persistent/place.clh"
#include "attention/attention.clh"
typedef float Word;
typedef floatv wordv;
#define MULTIPLY_ADD(sum, a, b) (sum) = fma(a, b, sum)

typedef struct {
  floatv words[HEAD_MAX * 2];
} Queries;

typedef struct {
  float words[BLOCK_WORDS];
} Keys;

// No zero point is left in the words.
static floatv first_sum(const Queries* queries, const Keys* keys, int key, int h) { return 0.0f; }
static int zero_of_packed(Operand v) { return 0; }

// ROWS rows from `row` on; those after `last` repeat it.
static void pack_queries(Operand q, Operand k, int row, int last, int head_size,
                         Queries* packed) {
  for (int h = 0; h < 2; h++, row += LANES)
    for (int d = 0; d < head_size; d += LANES) {
      const int n = min(LANES, head_size - d);
      intv x[LANES];
      load_centred_rows(q, row, last, d, n, x);
      for (int t = 0; t < n; t++) packed->words[(d + t) * 2 + h] = convert_floatv(x[t]);
    }
}

// Rows keys[0 .. count - 1] of k or v.
static void pack_rows(Operand x, const int* keys, int count, int head_size, float* words) {
  for (int j = 0; j < count; j++, words += head_size) {
    __global const uchar* row = row_of(x, keys[j]);
    int d = 0;
    for (; d + LANES <= head_size; d += LANES)
      *(FloatvAny*)(words + d) =
          convert_floatv(load_centred(row + d, LANES, x.type, x.zero_point));
    for (; d < head_size; d++) words[d] = load_centred(row + d, 1, x.type, x.zero_point).s0;
  }
}

static void pack_keys(Operand q, Operand k, const int* keys, int count, int head_size,
                      Keys* packed) {
  pack_rows(k, keys, count, head_size, packed->words);
}

static void pack_values(Operand v, const int* keys, int count, int head_size, float* words) {
  pack_rows(v, keys, count, head_size, words);
}

// The exponential (>= 0) of a key.
static floatv quantize_group(const floatv* exponentials, floatv factor, int p_max) {
  return convert_floatv(quantize_probability(exponentials[0], factor, p_max));
}

#include "attention/attention_s8_cpu.clh"
MERGEABLE(attention_s8, ATTENTION_S8_ARGUMENTS)
