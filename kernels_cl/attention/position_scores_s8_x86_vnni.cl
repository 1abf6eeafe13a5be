// SPDX-License-Identifier: Apache-2.0
// What relative positions add to the scores of attention, of tokens and positions in bytes, for x86
// with AVX-512 VNNI. Integer sums are exact. Arguments and result as in position_scores_f32_ref.cl,
// except for
//
//   positions  [head][count / 32][ceil(head_size / 4) + 1][32] words of 32 columns side by side:
//              first -z times the sum of the column less its zero point, then four bytes of it in
//              each word, u8, 0 past head_size; the last panel is filled with zeros
//   scale      of the products of integers
//
// With x' = x as s8 (less 128 where it is u8), z its zero point then, p' = positions, z' theirs:
//
//   sum (x' - z)(p' - z') = sum x' p' - z' * sum x' - z * sum (p' - z')
//
// Products of ROWS tokens with the positions that they refer to are made, then taken, as in
// position_scores_f32_x86.cl.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1.
// Bounds: head_size <= HEAD_MAX, position_count <= POSITIONS. A work-item that finds an index
// outside of the positions writes no more scores.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size, a multiple of 64: size of the private tokens
#endif
#define LANES 16
#include "persistent/place.clh"
#include "attention/position_scores_x86.clh"
#include "units/vnni.clh"
#define TILE 8  // tokens in one register tile: TILE * 2 vectors of sums
#define TOKEN_VECTORS (HEAD_MAX / 64)
#define TOKEN_WORDS (HEAD_MAX / 4)

typedef int16 __attribute__((aligned(1), may_alias)) Int16AtByte;

// The next 64 bytes of a token as s8, of which n are in its head; 0 past them.
static int16 load_bytes(__global const uchar* from, int n, int flip) {
  if (n >= 64) return *(__global const Int16AtByte*)from ^ flip;
  int words[16];
  for (int i = 0; i < 16; i++) words[i] = 0;
  for (int i = 0; i < n; i++) ((uchar*)words)[i] = from[i] ^ (flip & 0x80);
  return vload16(0, words);
}

// ROWS tokens of x, those from `rows` on like the last, to tokens[r][d / 64]. Gives their sums.
static int16 load_tokens(__global const uchar* x, int stride, int rows, int head_size, int flip,
                         int16 tokens[ROWS][TOKEN_VECTORS]) {
  const int16 ones = 0x01010101;
  int16 sums[ROWS];
  for (int r = 0; r < ROWS; r++) {
    __global const uchar* row = x + (size_t)min(r, rows - 1) * stride;
    int16 sum = 0;
    for (int d = 0; d < head_size; d += 64) {
      const int16 bytes = load_bytes(row + d, head_size - d, flip);
      tokens[r][d / 64] = bytes;
      DOT4_EVEX(sum, ones, bytes);
    }
    sums[r] = sum;
  }
  transpose(sums);
#pragma unroll
  for (int i = 1; i < 16; i++) sums[0] += sums[i];
  return sums[0];
}

// products[r][position] for the positions of panels [first, end), less `terms` of each token.
static void multiply(const int* tokens, const int* terms, __global const int* positions, int words,
                     int first, int end, float* products) {
  for (int panel = first; panel < end; panel++) {
    __global const int* table = positions + (size_t)panel * (words + 1) * PANEL;
    const int16 start0 = vload16(0, table), start1 = vload16(1, table);
    for (int r = 0; r < ROWS; r += TILE) {
      int16 a0[TILE], a1[TILE];
#pragma unroll
      for (int t = 0; t < TILE; t++) a0[t] = start0, a1[t] = start1;
      const int* token = tokens + r * TOKEN_WORDS;
      for (int w = 0; w < words; w++) {
        const int16 p0 = vload16(0, table + (w + 1) * PANEL);
        const int16 p1 = vload16(1, table + (w + 1) * PANEL);
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          int16 y;
          __asm__("vpbroadcastd %1, %0" : "=v"(y) : "m"(token[t * TOKEN_WORDS + w]));
          DOT4_EVEX(a0[t], p0, y);
          DOT4_EVEX(a1[t], p1, y);
        }
      }
#pragma unroll
      for (int t = 0; t < TILE; t++) {
        float* to = products + (r + t) * PRODUCTS_PITCH + panel * PANEL;
        *(FloatvAny*)to = convert_float16(a0[t] - terms[r + t]);
        *(FloatvAny*)(to + 16) = convert_float16(a1[t] - terms[r + t]);
      }
    }
  }
}

ONE_ITEM KERNEL position_scores_s8(POSITION_SCORES_PARAMETERS(int) PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const int begin = seq_offsets[PLACE.id.z], count = seq_offsets[PLACE.id.z + 1] - begin;
  const int first = PLACE.id.x * block_rows, last = min(first + block_rows, count);
  if (first >= last) return;
  const int words = (head_size + 3) / 4, flip = x_type == TYPE_U8 ? (int)0x80808080 : 0;
  positions += head * table_size(position_count, words + 1);

  int16 tokens[ROWS][TOKEN_VECTORS];
  float products[ROWS * PRODUCTS_PITCH];

  for (int from = first; from < last; from += ROWS) {
    const int rows = min(ROWS, last - from);
    int2 bounds = bounds_of(index, index_row, from, from + rows - 1, count, position_count);
    if (bounds.x < 0 || bounds.y >= position_count) {
      *error = 1;
      return;
    }
    __global const uchar* row =
        x + (size_t)(begin + from) * x_stride + x_offset + head * head_size;
    const int16 terms =
        load_tokens(row, x_stride, rows, head_size, flip, tokens) * positions_zero_point;
    const size_t to = (size_t)head * out_head + (size_t)begin * out_row +
                      (of_keys ? (size_t)from * out_row : (size_t)from);
    prefetch_block(of_keys ? rows : count, of_keys ? count : rows, addend, to, out, out_row);
    multiply((const int*)tokens, (const int*)&terms, positions, words, bounds.x / PANEL,
             bounds.y / PANEL + 1, products);
    store_block(products, index, index_row, from, rows, count, position_count, of_keys, scale,
                addend, to, out, out_row);
  }
}

MERGEABLE(position_scores_s8, POSITION_SCORES_ARGUMENTS)
