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
#include "persistent/place.clh"
#include "attention/position_scores_x86.clh"
#define TILE (LANES / 2)  // tokens in one register tile: TILE * 2 vectors of sums
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
          float* to = products + (r + t) * PRODUCTS_PITCH + panel * PANEL + column;
          *(FloatvAny*)to = a0[t];
          *(FloatvAny*)(to + LANES) = a1[t];
        }
      }
  }
}

ONE_ITEM KERNEL position_scores(POSITION_SCORES_PARAMETERS(float) PLACE_PARAMETER) {
  const int head = PLACE.id.y;
  const int begin = seq_offsets[PLACE.id.z], count = seq_offsets[PLACE.id.z + 1] - begin;
  const int first = PLACE.id.x * block_rows, last = min(first + block_rows, count);
  if (first >= last) return;
  positions += head * table_size(position_count, head_size);

  float tokens[ROWS * HEAD_MAX];
  float products[ROWS * PRODUCTS_PITCH];

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
    const size_t to = (size_t)head * out_head + (size_t)begin * out_row +
                      (of_keys ? (size_t)from * out_row : (size_t)from);
    prefetch_block(of_keys ? rows : count, of_keys ? count : rows, addend, to, out, out_row);
    multiply(tokens, positions, head_size, bounds.x / PANEL, bounds.y / PANEL + 1, products);
    store_block(products, index, index_row, from, rows, count, position_count, of_keys, scale,
                addend, to, out, out_row);
  }
}

MERGEABLE(position_scores, POSITION_SCORES_ARGUMENTS)
