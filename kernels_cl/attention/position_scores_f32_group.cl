// SPDX-License-Identifier: Apache-2.0
// What relative positions add to the scores of attention, for GPUs. Operands and result as in
// position_scores_f32_ref.cl, to the bit: columns are added in the same order.
//
// A work-group of 256 makes the scores of TILE rows with TILE keys of one head. The tokens of x
// among them, and the positions from the lowest to the highest of the tile, TILE at a time, pass
// through local memory in strips of DEPTH columns; then each score takes its product:
//
//                       p_strip                     rows
//        DEPTH           o-----o  positions        o-----o
//       o-----o    DEPTH | [p] |  first ..    keys |index|  position of a row and a key: in
//  TILE | [x] |          o-----o                   o-----o  registers of the work-items
//       o-----o                                       |
//       x_strip          o-----o                      v
//                   TILE |     |  ----->  scale * products[row or key][position - first] + addend
//                        o-----o
//                        products, where the strips were
//
// Neighbouring work-items have neighbouring rows, which lie together in out. Distances of
// neighbours differ by one, or not at all: PITCH spreads their products over the banks either way.
//
// Grid: (ITEMS * ceil(longest sequence / TILE), heads * ceil(longest sequence / TILE), batch),
// work-group (ITEMS, 1, 1); block_rows is not read. Bounds: x begins at a multiple of 16 bytes; any
// head_size, any number of positions; 17 KB of local memory.
#include "attention/position_scores.clh"
#include "lib/narrow.clh"

#define ITEMS 256
#define ITEM ((int)get_local_id(0))
#define TILE 64  // rows, keys and positions
#define DEPTH 16
#define PITCH (TILE + 4)  // vectors stay aligned
#define SCORES (TILE * TILE / ITEMS)  // of a work-item: those of a row with the keys KEY(i)
#define ROW (ITEM % TILE)
#define KEY(i) (ITEM / TILE + (i) * (ITEMS / TILE))

// Four columns of x from element i on without their zero point, 0 from column `left` on.
static float4 load_columns(__global const uchar* x, size_t i, int left, int type, int zero_point,
                           bool aligned) {
  if (aligned && left >= 4) {
    if (type == TYPE_F32) return *(__global const float4*)((__global const float*)x + i);
    const int4 bytes = type == TYPE_U8 ? convert_int4(*(__global const uchar4*)(x + i))
                                       : convert_int4(*(__global const char4*)(x + i));
    return convert_float4(bytes - zero_point);
  }
  return (float4)(left > 0 ? element_of(x, i, type, zero_point) : 0.0f,
                  left > 1 ? element_of(x, i + 1, type, zero_point) : 0.0f,
                  left > 2 ? element_of(x, i + 2, type, zero_point) : 0.0f,
                  left > 3 ? element_of(x, i + 3, type, zero_point) : 0.0f);
}

// DEPTH columns of TILE positions from `first` on to strip[column][position]; 0 past the head.
static void load_positions(__global const float* positions, int first, int position_count,
                           int column, int head_size, __local int* strip) {
  const int p = ITEM % TILE;
  positions += column_of(min(first + p, position_count - 1), head_size);
#pragma unroll
  for (int i = 0; i < DEPTH; i += ITEMS / TILE) {
    const int d = i + ITEM / TILE;
    strip[d * PITCH + p] =
        column + d < head_size ? as_int(positions[(size_t)(column + d) * PANEL]) : 0;
  }
}

// sums[i][j] += a[i] * b[j] along DEPTH columns of two strips.
__attribute__((always_inline)) static void multiply(float4 sums[4], __local const int* a,
                                                    __local const int* b) {
#pragma unroll 4
  for (int d = 0; d < DEPTH; d++) {
    const float4 x = as_float4(*(__local const int4*)(a + d * PITCH));
    const float4 p = as_float4(*(__local const int4*)(b + d * PITCH));
    sums[0] = fma((float4)(x.s0), p, sums[0]);
    sums[1] = fma((float4)(x.s1), p, sums[1]);
    sums[2] = fma((float4)(x.s2), p, sums[2]);
    sums[3] = fma((float4)(x.s3), p, sums[3]);
  }
}

// The lowest and the highest of all work-items.
static int2 bounds_of(int low, int high, __local int* words) {
  words[ITEM] = low;
  words[ITEMS + ITEM] = high;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int items = ITEMS / 4; items > 0; items /= 4) {  // 64, 16, 4, 1
    if (ITEM < items) {
#pragma unroll
      for (int i = 1; i < 4; i++) {
        low = min(low, words[ITEM + i * items]);
        high = max(high, words[ITEMS + ITEM + i * items]);
      }
      words[ITEM] = low;
      words[ITEMS + ITEM] = high;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return (int2)(words[0], words[ITEMS]);
}

// Positions among TILE from `first` on become their products, and are marked in `taken`; those of
// the token of score i begin at from[i * step].
__attribute__((always_inline)) static int take(int* scores, int taken, int first,
                                               __local const int* from, int step) {
#pragma unroll
  for (int i = 0; i < SCORES; i++) {
    const int at = scores[i] - first;
    if (at < 0 || at >= TILE || taken >> i & 1) continue;
    scores[i] = from[i * step + at];
    taken |= 1 << i;
  }
  return taken;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW __kernel void position_scores(
    POSITION_SCORES_PARAMETERS(float)) {
  // Words: a float read as an int, or an int as a float, would be undefined.
  __local int words[TILE * PITCH] __attribute__((aligned(16)));
  __local int *x_strip = words, *p_strip = words + DEPTH * PITCH;
  const int tx = ITEM % (TILE / 4), ty = ITEM / (TILE / 4);
  const int head = (int)get_group_id(1) % heads, sequence = get_group_id(2);
  const int begin = seq_offsets[sequence], count = seq_offsets[sequence + 1] - begin;
  const int row0 = (int)get_group_id(0) * TILE, key0 = (int)get_group_id(1) / heads * TILE;
  const int from0 = of_keys ? key0 : row0;
  const bool aligned = ((x_stride | x_offset | head_size) & 3) == 0;
  positions += head * table_size(position_count, head_size);

  // Every work-item meets every barrier: a group past its sequence has no positions.
  // Of each score the position first, then the product.
  int scores[SCORES], taken = 0, low = INT_MAX, high = -1;
#pragma unroll
  for (int i = 0; i < SCORES; i++) {
    const int row = row0 + ROW, key = key0 + KEY(i);
    scores[i] = -1;
    if (row >= count || key >= count) continue;
    int at = index[(size_t)(of_keys ? key : row) * index_row + (of_keys ? row : key)];
    at = at < 0 ? at + position_count : at;
    if (at < 0 || at >= position_count) *error = 1;
    scores[i] = at = clamp(at, 0, position_count - 1);
    low = min(low, at);
    high = max(high, at);
  }
  const int2 bounds = bounds_of(low, high, words);

  for (int first = bounds.s0; first <= bounds.s1; first += TILE) {
    float4 sums[4];
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = (float4)(0.0f);
    for (int column = 0; column < head_size; column += DEPTH) {
      barrier(CLK_LOCAL_MEM_FENCE);  // what was there has been read
      const int token = ITEM / 4, d = ITEM % 4 * 4;
      const size_t row = (size_t)(begin + min(from0 + token, count - 1)) * x_stride;
      const int4 y = as_int4(load_columns(x, row + x_offset + head * head_size + column + d,
                                          head_size - column - d, x_type, x_zero_point, aligned));
      x_strip[d * PITCH + token] = y.s0;
      x_strip[(d + 1) * PITCH + token] = y.s1;
      x_strip[(d + 2) * PITCH + token] = y.s2;
      x_strip[(d + 3) * PITCH + token] = y.s3;
      load_positions(positions, first, position_count, column, head_size, p_strip);
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply(sums, x_strip + ty * 4, p_strip + tx * 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // the strips have been read
#pragma unroll
    for (int i = 0; i < 4; i++)
      *(__local int4*)(words + (ty * 4 + i) * PITCH + tx * 4) = as_int4(sums[i]);
    barrier(CLK_LOCAL_MEM_FENCE);

    taken = of_keys ? take(scores, taken, first, words + KEY(0) * PITCH, ITEMS / TILE * PITCH)
                    : take(scores, taken, first, words + ROW * PITCH, 0);
  }

  const size_t corner = (size_t)head * out_head + (size_t)(begin + key0) * out_row + row0;
#pragma unroll
  for (int i = 0; i < SCORES; i++) {
    if (!(taken >> i & 1)) continue;
    const size_t to = corner + (size_t)KEY(i) * out_row + ROW;
    const float product = as_float(scores[i]);
    out[to] = addend ? fma(product, scale, addend[to]) : product * scale;
  }
}
