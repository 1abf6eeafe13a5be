// SPDX-License-Identifier: Apache-2.0
// What relative positions add to the scores of attention, for CPUs with wide vectors. Operands and
// result as in position_scores_f32_ref.cl.
//
// A work-item takes ROWS tokens of x of one head at a time. Their products with every position that
// they refer to are a small GEMM, whose result stays in the first-level cache; from it each score
// takes its own:
//
//      positions                    to: keys, or rows where x are keys
//        o-------o                   o--------o
//    d   | panels|              ROWS | index  |
//        o-------o                   o--------o
//    d    first..end                     |
//   o---o o-------o                      v
//   |[x]| |       | ROWS  ----->  scale * products[from][index[from][to]] + addend
//   o---o o-------o
//         products
//
// Where x are keys, the scores of a key with LANES rows are stored as they are; where x are
// queries, ROWS x LANES of them are transposed first.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1.
// Bounds: head_size <= HEAD_MAX, position_count <= POSITIONS. A work-item that finds an index
// outside of the positions writes no more scores.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private tokens
#endif
#ifndef POSITIONS
#define POSITIONS 512  // a multiple of 32, at least position_count
#endif
#include "persistent/place.clh"
#include "attention/position_scores.clh"
#include "lib/lanes.clh"
#include "attention/transposed.clh"
#define ROWS LANES
#if LANES == 16
#define TILE 8  // tokens in one register tile: TILE * 2 vectors of sums
#define UP (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define REVERSED(x) (x).sfedcba9876543210
#define GATHERED(p, i)                                                                          \
  (float16)((p)[i.s0], (p)[i.s1], (p)[i.s2], (p)[i.s3], (p)[i.s4], (p)[i.s5], (p)[i.s6],        \
            (p)[i.s7], (p)[i.s8], (p)[i.s9], (p)[i.sa], (p)[i.sb], (p)[i.sc], (p)[i.sd],        \
            (p)[i.se], (p)[i.sf])
#else
#define TILE 4
#define UP (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#define REVERSED(x) (x).s76543210
#define GATHERED(p, i)                                                                          \
  (float8)((p)[i.s0], (p)[i.s1], (p)[i.s2], (p)[i.s3], (p)[i.s4], (p)[i.s5], (p)[i.s6], (p)[i.s7])
#endif

// The positions of indices, of which negative ones count from the end.
static intv from_start(intv index, int count) { return index < 0 ? index + count : index; }

// The next n indices; lanes from n on repeat the last.
static intv load_index(__global const int* index, int n) {
  if (n == LANES) return *(__global const IntvAny*)index;
  intv x;
  for (int l = 0; l < LANES; l++) ((int*)&x)[l] = index[min(l, n - 1)];
  return x;
}

// The smallest and largest position of tokens [from, last] with places [0, count).
static int2 bounds_of(__global const int* index, int index_row, int from, int last, int count,
                      int position_count) {
  intv low = INT_MAX, high = INT_MIN;
  for (int i = from; i <= last; i++)
    for (int j = 0; j < count; j += LANES) {
      const intv next = load_index(index + (size_t)i * index_row + j, min(LANES, count - j));
      const intv at = from_start(next, position_count);
      low = at < low ? at : low;
      high = at > high ? at : high;
    }
  int2 bounds = (int2)(INT_MAX, INT_MIN);
  for (int l = 0; l < LANES; l++) {
    bounds.x = min(bounds.x, ((int*)&low)[l]);
    bounds.y = max(bounds.y, ((int*)&high)[l]);
  }
  return bounds;
}

// products[r][position] for the positions of panels [first, end); tokens[r][d].
static void multiply(const float* tokens, __global const float* positions, int head_size, int first,
                     int end, float* products) {
  for (int panel = first; panel < end; panel++) {
    __global const float* table = positions + (size_t)panel * PANEL * head_size;
    for (int column = 0; column < PANEL; column += 2 * LANES)
      for (int r = 0; r < ROWS; r += TILE) {
        floatv a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) a0[t] = a1[t] = 0.0f;
        for (int d = 0; d < head_size; d++) {
          const floatv p0 = *(__global const FloatvAny*)(table + d * PANEL + column);
          const floatv p1 = *(__global const FloatvAny*)(table + d * PANEL + column + LANES);
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv y = tokens[(r + t) * head_size + d];
            a0[t] = fma(y, p0, a0[t]);
            a1[t] = fma(y, p1, a1[t]);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          float* to = products + (r + t) * POSITIONS + panel * PANEL + column;
          *(FloatvAny*)to = a0[t];
          *(FloatvAny*)(to + LANES) = a1[t];
        }
      }
  }
}

// The products of one token with LANES positions. Positions of neighbouring places are mostly
// neighbours, up or down: then they are one load.
static floatv products_at(const float* products, intv at) {
  const intv from_first = at - at.s0;
  if (!any(from_first != UP)) return *(const FloatvAny*)(products + at.s0);
  if (!any(from_first != -UP)) return REVERSED(*(const FloatvAny*)(products + at.s0 - LANES + 1));
  return GATHERED(products, at);
}

// Scores [at, at + n) of out from their products.
static void store_scores(floatv y, int n, float scale, __global const float* addend, size_t at,
                         __global float* out) {
  y *= scale;
  if (n == LANES) {
    if (addend) y += *(__global const FloatvAny*)(addend + at);
    *(__global FloatvAny*)(out + at) = y;
  } else {
    for (int l = 0; l < n; l++) out[at + l] = ((float*)&y)[l] + (addend ? addend[at + l] : 0.0f);
  }
}

ONE_ITEM KERNEL position_scores(POSITION_SCORES_PARAMETERS PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const int begin = seq_offsets[PLACE.id.z], count = seq_offsets[PLACE.id.z + 1] - begin;
  const int first = PLACE.id.x * block_rows, last = min(first + block_rows, count);
  if (first >= last) return;
  positions += head * table_size(position_count, head_size);

  float tokens[ROWS * HEAD_MAX];
  float products[ROWS * POSITIONS];

  for (int from = first; from < last; from += ROWS) {
    const int rows = min(ROWS, last - from);
    int2 bounds = bounds_of(index, index_row, from, from + rows - 1, count, position_count);
    if (bounds.x < 0 || bounds.y >= position_count) {
      *error = 1;
      return;
    }
    for (int r = 0; r < ROWS; r++) {
      const size_t row = (size_t)(begin + min(from + r, last - 1)) * x_stride;
      for (int d = 0; d < head_size; d++)
        tokens[r * head_size + d] =
            element_of(x, row + x_offset + head * head_size + d, x_type, x_zero_point);
    }
    multiply(tokens, positions, head_size, bounds.x / PANEL, bounds.y / PANEL + 1, products);

    const size_t target = (size_t)head * out_head + (size_t)begin * out_row;
    for (int to = 0; to < count; to += LANES) {
      const int n = min(LANES, count - to);
      intv scores[ROWS];
      for (int r = 0; r < ROWS; r++) {
        const int row = min(r, rows - 1);
        const intv at = load_index(index + (size_t)(from + row) * index_row + to, n);
        scores[r] = as_intv(products_at(products + row * POSITIONS,
                                        from_start(at, position_count)));
      }
      if (!of_keys) transpose(scores);
      const int stored = of_keys ? rows : n, width = of_keys ? n : rows;
      const size_t first_score =
          target + (of_keys ? (size_t)from * out_row + to : (size_t)to * out_row + from);
      for (int r = 0; r < stored; r++)
        store_scores(as_floatv(scores[r]), width, scale, addend, first_score + (size_t)r * out_row,
                     out);
    }
  }
}

MERGEABLE(position_scores, POSITION_SCORES_ARGUMENTS)
