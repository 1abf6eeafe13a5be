// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in f32 for CPUs with wide vectors: attention_float_cpu.clh with one
// element in a word, queries times scale * log2(e):
//
//   queries  [d][rows]
//   keys     [keys][d]
//   scores   [keys][rows]   then exponentials
//   values   [keys][d]
//
// Bounds: head_size <= HEAD_MAX; block_rows should be a multiple of 2 * LANES. No unsafe math
// options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 64  // keys whose scores are held at a time, a multiple of TILE
#endif
#ifndef CACHED_WORDS
#define CACHED_WORDS (1 << 15)  // of keys kept at a time, and of values: 512 keys of 64
#endif
#ifndef CACHED_KEYS
#define CACHED_KEYS 2048  // of them at most, for small heads
#endif
#define ATTENTION attention_f32
#define GROUP 1
#define ONES 1.0f
#include "persistent/place.clh"
#include "attention/attention.clh"
typedef float Element;
typedef float Word;
typedef floatv wordv;
#define MULTIPLY_ADD(sum, a, b) (sum) = fma(a, b, sum)

// ROWS rows from `row` on; those after `last` repeat it.
static void pack_queries(__global const float* q, int stride, int row, int last, int head_size,
                         float log2_scale, floatv* words) {
  for (int h = 0; h < 2; h++, row += LANES)
    load_transposed((__global const int*)q + (size_t)min(row, last) * stride, stride,
                    max(last + 1 - row, 1), head_size, (intv*)words + h, 2);
  for (int i = 0; i < head_size * 2; i++) words[i] *= log2_scale;
}

// Row keys[0] of k or v.
static void pack_row(__global const float* from, int stride, const int* keys, int head_size,
                     float* words) {
  __global const float* row = from + (size_t)keys[0] * stride;
  int d = 0;
  for (; d + LANES <= head_size; d += LANES)
    *(FloatvAny*)(words + d) = *(__global const FloatvAny*)(row + d);
  for (; d < head_size; d++) words[d] = row[d];
}
#define pack_keys pack_row
#define pack_values pack_row

static floatv exponent_of(floatv sum, float log2_scale) { return sum; }

static __attribute__((always_inline)) floatv exponentiate_group(const floatv* scores,
                                                                floatv largest, int present,
                                                                Exp2 e) {
  return exp2_or_nan(scores[0] - largest, e);
}

static void store_floats(floatv* result, floatv factor0, floatv factor1, int rows, int head_size,
                         int stride, __global float* out) {
  for (int d = 0; d < head_size; d++) {
    result[d * 2] *= factor0;
    result[d * 2 + 1] *= factor1;
  }
  for (int h = 0; h < 2; h++)
    store_transposed((__global int*)out + (size_t)h * LANES * stride, stride, rows - h * LANES,
                     head_size, (const intv*)result + h, 2);
}

#include "attention/attention_float_cpu.clh"
MERGEABLE(attention_f32, ATTENTION_FLOAT_ARGUMENTS)
