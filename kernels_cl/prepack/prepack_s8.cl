// SPDX-License-Identifier: Apache-2.0
// Prepacks columns of int8 weights into the panels that the gemm_s8 variants read, and sums them.
//
//   w [K][n]                    panels [ceil(N/panel)][ceil(K/group)][panel][group]
//
//   k = 0   a0 b0 c0 ..         | a0 a1 a2 a3 | b0 b1 b2 b3 | c0 ..    columns a, b, c of a panel,
//   k = 1   a1 b1 c1 ..   --->  | a4  0  0  0 | b4  0  0  0 | c4 ..    group 4, K = 5; zeros past
//     ..                                                               N and K
//   k = 4   a4 b4 c4 ..         column_sums: a0 + .. + a4, b0 + .. + b4, ..
//
// With ORDER_BLOCK the order of the quads (groups of 4 rows) follows them, see gemm_s8_x86_avx2.cl.
// A pair of neighbours can saturate by pmaddubsw if 255 times the sum of its positive weights
// exceeds 32,767 or that of its negative ones falls below -32,768: if the former sum is above 128
// or the latter below -128.
//
//   quad of a column      w0  w1  w2  w3
//   cannot saturate:      60  68 -90 100      60 + 68 <= 128
//   can:                  60  69   0   0      60 + 69 > 128
//
// w holds columns first .. first + n - 1 of the N columns of all; see prepack_f32.cl.
//
// Arguments: 0 w s8 [K][n]; 1 panels s8, ceil(N/panel) * panel * ceil(K/group) * group bytes, and
// the order; 2 column_sums s32 [N]; 3 n; 4 K; 5 panel (at most 64); 6 group; 7 first; 8 N.
// Grid: an item for each panel that holds a column of w, or panel / ITEM_COLUMNS of them where that
// is not 0; any work-group size.

#include "prepack/weights.clh"

#ifndef ORDER_BLOCK
#define ORDER_BLOCK 0  // rows of w in each of which quads are ordered (group 4); 0: no order
#endif
#if ORDER_BLOCK && ITEM_COLUMNS
#error "an item that orders a panel makes all of it"
#endif

#define MAX_PANEL (ITEM_COLUMNS ? ITEM_COLUMNS : 64)

// Whole groups of rows in panels that w fills: loops of known length that become vector code.
#define PREPACK_WHOLE(GROUP)                                            \
  for (; k0 + GROUP <= K; k0 += GROUP, to += panel * GROUP) {           \
    __global const char* from = w + (size_t)k0 * n + (column0 - first); \
    for (int p = 0; p < panel; p++) {                                   \
      int sum = 0;                                                      \
      for (int j = 0; j < GROUP; j++) {                                 \
        const char value = from[(size_t)j * n + p];                     \
        to[p * GROUP + j] = value;                                      \
        sum += value;                                                   \
      }                                                                 \
      sums[p] += sum;                                                   \
    }                                                                   \
  }

#if ORDER_BLOCK
static int can_saturate(__global const char* pair) {
  return max(pair[0], (char)0) + max(pair[1], (char)0) > 128 ||
         min(pair[0], (char)0) + min(pair[1], (char)0) < -128;
}

// Writes for each block of a panel how many of its quads cannot saturate, then those, then the
// others.
static void order_quads(__global const char* panel, const int columns, const int quads,
                        __global ushort* order) {
  for (int begin = 0; begin < quads; begin += ORDER_BLOCK / 4) {
    const int count = min(ORDER_BLOCK / 4, quads - begin);
    ushort others[ORDER_BLOCK / 4];
    int exact = 0, saturating = 0;
    for (int q = 0; q < count; q++) {
      __global const char* quad = panel + (size_t)(begin + q) * columns * 4;
      int saturates = 0;
      for (int pair = 0; pair < 2 * columns; pair++) saturates |= can_saturate(quad + 2 * pair);
      if (saturates)
        others[saturating++] = q;
      else
        order[++exact] = q;
    }
    order[0] = exact;
    for (int q = 0; q < saturating; q++) order[1 + exact + q] = others[q];
    order += 1 + count;
  }
}
#endif

__kernel void prepack_s8(__global const char* restrict w, __global char* restrict panels,
                         __global int* restrict column_sums, const int n, const int K,
                         const int panel, const int group, const int first, const int N) {
  const int width = ITEM_COLUMNS ? ITEM_COLUMNS : panel, parts = panel / width;
  const int item = get_global_id(0), index = first / panel + item / parts;
  const int column0 = index * panel, left = column0 + item % parts * width;
  if (column0 >= first + n) return;
  const int begin = max(first, left), end = max(begin, min(first + n, left + width));
  const int zeros = first + n == N ? left + width : end;  // end of those after the last column
  const int groups = (K + group - 1) / group;
  __global char* to = panels + (size_t)index * groups * panel * group;

  int sums[MAX_PANEL];
  for (int p = 0; p < MAX_PANEL; p++) sums[p] = 0;
  int k0 = 0;
  if (end - begin == panel) {
    if (group == 4) PREPACK_WHOLE(4)
  }
  for (; k0 < groups * group; k0 += group, to += panel * group) {
    for (int column = begin; column < zeros; column++) {
      const int p = column - column0;
      int sum = 0;
      for (int j = 0; j < group; j++) {
        const bool exists = column < end && k0 + j < K;
        const char value = exists ? w[(size_t)(k0 + j) * n + (column - first)] : 0;
        sum += value;
        to[p * group + j] = value;
      }
      sums[column - left] += sum;
    }
  }
  for (int column = begin; column < end; column++) column_sums[column] = sums[column - left];
#if ORDER_BLOCK
  if (zeros < column0 + panel) return;  // a later launch makes the rest
  const int count = (N + panel - 1) / panel, blocks = (4 * groups + ORDER_BLOCK - 1) / ORDER_BLOCK;
  order_quads(panels + (size_t)index * groups * panel * 4, panel, groups,
              (__global ushort*)(panels + (size_t)count * groups * panel * 4) +
                  (size_t)index * (groups + blocks));
#endif
}
