// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences for GPUs, in f32. Same arguments and semantics as
// attention_f32_ref.cl.
//
// A work-group of 256 computes ROWS rows of one head, with an online softmax over tiles of KEYS
// keys: if a tile has a larger score than all before it, the sums so far are rescaled. Operands
// pass through local memory in strips of DEPTH columns of q and k, then of DEPTH keys of v:
//
//                  KEYS                             HEAD_MAX
//               o--------o                        o----------o
//         DEPTH |k_strip |                  DEPTH | v_strip  |   scores and result in registers,
//               o--------o                        o----------o   divided among the items as
//    DEPTH                          KEYS                         attention_groups.clh shows
//   o-------o   o--------o        o--------o      o----------o
//   |q_strip|   | scores |  --->  | p_tile |      |  result  | ROWS
//   o-------o   o--------o        o--------o      o----------o
//
//   q_strip [DEPTH][ROW_PITCH]   columns of all rows side by side, times scale * log2(e)
//   k_strip [DEPTH][KEY_PITCH]   columns of all keys side by side
//   p_tile  [KEYS][ROW_PITCH]    exponentials of the scores
//   v_strip [DEPTH][HEAD_MAX]    where the strips of q and k were; between uses, what the items of
//                                a row tell each other
//
// Local memory is words: a float read as an int, or an int as a float, would be undefined.
//
// BIAS 1: scores may have a bias and a window: a score outside of it is minus infinity, and tiles
// outside of the windows of all rows are left out.
//
// A masked key contributes nothing, whatever its k and v hold. A padded sequence gives the same
// bytes as a packed one: missing keys add 0.
//
// Grid: (ITEMS * ceil(longest sequence / ROWS), heads, batch), work-group (ITEMS, 1, 1); block_rows
// is not read. Bounds: head_size <= HEAD_MAX, at most 26 KB of local memory; q, k and v begin at
// multiples of 16 bytes. No unsafe math options.
#include "attention/attention_groups.clh"
#include "attention/parameters.clh"
#include "lib/narrow.clh"

#define DEPTH 16
#define Q_WORDS (DEPTH * ROW_PITCH)
#define QK_WORDS (Q_WORDS + DEPTH * KEY_PITCH)
#define V_WORDS (DEPTH * HEAD_MAX)
#define STRIP_WORDS (V_WORDS > QK_WORDS ? V_WORDS : QK_WORDS)

// Columns i .. i + 3 of a row, 0 from `size` on.
static float4 load_columns(__global const float* row, int i, int size, bool aligned) {
  if (aligned && i + 4 <= size) return *(__global const float4*)(row + i);
  float x[4];
#pragma unroll
  for (int t = 0; t < 4; t++) x[t] = i + t < size ? *(row + i + t) : 0.0f;
  return (float4)(x[0], x[1], x[2], x[3]);
}

// DEPTH columns from `column` on of `count` rows from `first` on, none past `last`, times `factor`,
// to strip[column][row]: four work-items a row.
static void load_strip(__global const float* from, int stride, int first, int last, int count,
                       int column, int head_size, float factor, bool aligned, __local int* strip,
                       int pitch) {
  const int row = ITEM / 4, i = ITEM % 4 * 4;
  if (row >= count) return;
  const int4 x = as_int4(
      load_columns(from + (size_t)min(first + row, last) * stride, column + i, head_size, aligned) *
      factor);
  strip[i * pitch + row] = x.s0;
  strip[(i + 1) * pitch + row] = x.s1;
  strip[(i + 2) * pitch + row] = x.s2;
  strip[(i + 3) * pitch + row] = x.s3;
}

// DEPTH rows of v from `first` on to strip[key][d], 0 for those that are not attended.
static void load_values(__global const float* v, int stride, int first, int end,
                        __global const uchar* key_mask, int use_mask, int head_size, bool aligned,
                        __local int* strip) {
#pragma unroll
  for (int unit = 0; unit < V_WORDS / 4; unit += ITEMS) {
    const int u = unit + ITEM, key = first + u / (HEAD_MAX / 4);
    if (u >= V_WORDS / 4) continue;
    float4 x = (float4)(0.0f);
    if (key < end && (!use_mask || key_mask[key]))
      x = load_columns(v + (size_t)key * stride, u % (HEAD_MAX / 4) * 4, head_size, aligned);
    *(__local int4*)(strip + 4 * u) = as_int4(x);
  }
}

// x[i][j] += a[i] * b[j] along DEPTH rows of two strips.
__attribute__((always_inline)) static void multiply(float x[ITEM_ROWS][4], __local const int* a,
                                                    __local const int* b) {
#pragma unroll 4
  for (int d = 0; d < DEPTH; d++) {
    int rows[ITEM_ROWS], keys[4];
    load_local(a + d * ROW_PITCH, ITEM_ROWS, rows);
    load_local(b + d * KEY_PITCH, 4, keys);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) x[i][j] = fma(as_float(rows[i]), as_float(keys[j]), x[i][j]);
    }
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW __kernel void attention_f32(
    ATTENTION_FLOAT_PARAMETERS(float)) {
  __local int strip[STRIP_WORDS] __attribute__((aligned(16)));
  __local int p_tile[KEYS * ROW_PITCH] __attribute__((aligned(16)));
  __local int* k_strip = strip + Q_WORDS;
  const int tx = ITEM % ITEMS_X, ty = ITEM / ITEMS_X;
  const int head = get_group_id(1), sequence = get_group_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int row0 = begin + (int)get_group_id(0) * ROWS;
  // Every work-item meets every barrier: a group past its sequence has no tiles.
  const Tiles tiles = tiles_of(begin, end, row0, BIAS ? window : 0);
  const bool q_aligned = ((q_stride | q_offset | head_size) & 3) == 0;
  const bool k_aligned = ((k_stride | k_offset | head_size) & 3) == 0;
  const bool v_aligned = ((v_stride | v_offset | head_size) & 3) == 0;
  const float log2_scale = scale * M_LOG2E_F;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, begin);

  float sums[ITEM_ROWS][COLUMNS], largest[ITEM_ROWS], total[ITEM_ROWS];
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    largest[i] = -FLT_MAX;
    total[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) sums[i][j] = 0.0f;
  }

  for (int tile = tiles.first; tile < tiles.end; tile++) {
    const int key0 = begin + tile * KEYS;
    float x[ITEM_ROWS][4];
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0.0f;
    for (int column = 0; column < head_size; column += DEPTH) {
      barrier(CLK_LOCAL_MEM_FENCE);  // what was there has been read
      load_strip(q, q_stride, row0, end - 1, ROWS, column, head_size, log2_scale, q_aligned, strip,
                 ROW_PITCH);
      load_strip(k, k_stride, key0, end - 1, KEYS, column, head_size, 1.0f, k_aligned, k_strip,
                 KEY_PITCH);
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply(x, strip + ty * ITEM_ROWS, k_strip + tx * 4);
    }

    const int key = key0 + tx * 4, first_row = row0 + ty * ITEM_ROWS;
    const int4 all_keys = attended(key, end, key_mask, use_mask);
    float before[ITEM_ROWS];
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
      float4 scores = (float4)(x[i][0], x[i][1], x[i][2], x[i][3]);
      if (BIAS) {
        // To natural logarithms, in which the bias is, and back.
        scores = with_bias(scores, M_LN2_F, added, window, first_row + i - begin,
                           key - begin, (int4)(0, 1, 2, 3), end - 1 - begin);
        if (bias) scores = to_base_2(scores);
        x[i][0] = scores.s0, x[i][1] = scores.s1, x[i][2] = scores.s2, x[i][3] = scores.s3;
      }
      const float4 known = select((float4)(-FLT_MAX), scores, -in_window(all_keys, scores));
      before[i] = largest[i];
      largest[i] = fmax(fmax(fmax(known.s0, known.s1), fmax(known.s2, known.s3)), before[i]);
    }
    largest_along_row(strip, largest);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++) {
      const float shrink = exp2_negative((float4)(before[i] - largest[i])).s0;
      const float4 scores = (float4)(x[i][0], x[i][1], x[i][2], x[i][3]);
      const float4 p = select((float4)(0.0f), exp2_or_nan(scores - largest[i]),
                              -in_window(all_keys, scores));
      total[i] = total[i] * shrink + (p.s0 + p.s1 + p.s2 + p.s3);
      const int4 words = as_int4(p);
      __local int* to = p_tile + tx * 4 * ROW_PITCH + ty * ITEM_ROWS + i;
      to[0] = words.s0, to[ROW_PITCH] = words.s1;
      to[2 * ROW_PITCH] = words.s2, to[3 * ROW_PITCH] = words.s3;
#pragma unroll
      for (int j = 0; j < COLUMNS; j++) sums[i][j] *= shrink;
    }

    for (int first = 0; first < KEYS; first += DEPTH) {
      barrier(CLK_LOCAL_MEM_FENCE);
      load_values(v, v_stride, key0 + first, end, key_mask, use_mask, head_size, v_aligned, strip);
      barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
      for (int key = 0; key < DEPTH; key++) {
        int p[ITEM_ROWS], values[COLUMNS];
        load_local(p_tile + (first + key) * ROW_PITCH + ty * ITEM_ROWS, ITEM_ROWS, p);
#pragma unroll
        for (int j = 0; j < COLUMNS; j += WIDTH)
          load_local(strip + key * HEAD_MAX + COLUMN(j), WIDTH, values + j);
#pragma unroll
        for (int i = 0; i < ITEM_ROWS; i++) {
#pragma unroll
          for (int j = 0; j < COLUMNS; j++)
            sums[i][j] = fma(as_float(p[i]), as_float(values[j]), sums[i][j]);
        }
      }
    }
  }

  sum_along_row(strip, total);
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; i++) {
    const int row = row0 + ty * ITEM_ROWS + i;
    if (row >= end) continue;
    const float inverse = total[i] == 0.0f ? 0.0f : 1.0f / total[i];
    __global float* to = out + ((size_t)row * heads + head) * head_size;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
      if (COLUMN(j) < head_size) to[COLUMN(j)] = sums[i][j] * inverse;
  }
}
