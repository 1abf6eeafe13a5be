// SPDX-License-Identifier: Apache-2.0
// Prepacks columns of fp32 weights into the panels that the gemm_f32 variants read.
//
//    w [K][n]                  panels [ceil(N/panel)][K][panel], f32, or f16 with -DB_HALF=1
//                              (rounded half to even)
//
//        n                       panel     panel     panel
//   o---------o                o-------o o-------o o-------o   .  of other launches
// K |    w    |     --->     K | . . w | | w w w | | w 0 0 |   0  past N
//   o---------o                o-------o o-------o o-------o
//                                   column first      column first + n - 1
//
// w holds columns first .. first + n - 1 of the N columns of all, so that parts that lie apart are
// stored side by side by one launch each.
//
// Arguments: 0 w [K][n] f32, or f16 with -DW_HALF=1, at any address; 1 panels, ceil(N/panel) *
// panel * K elements; 2 n; 3 K; 4 panel; 5 first; 6 N.
// Grid: an item for each panel that holds a column of w, or panel / ITEM_COLUMNS of them where that
// is not 0; any work-group size.

#ifndef B_HALF
#define B_HALF 0  // 1: store in half precision
#endif
#include "prepack/weights.clh"

#if B_HALF
typedef half Weight;
#define STORE_WEIGHT(value, i, to) vstore_half_rte((value), (i), (to))
#else
typedef float Weight;
#define STORE_WEIGHT(value, i, to) ((to)[i] = (value))
#endif

__kernel void prepack_f32(__global const Source* restrict w, __global Weight* restrict panels,
                       const int n, const int K, const int panel, const int first, const int N) {
  const int width = ITEM_COLUMNS ? ITEM_COLUMNS : panel, parts = panel / width;
  const int item = get_global_id(0), index = first / panel + item / parts;
  const int column0 = index * panel, left = column0 + item % parts * width;
  if (column0 >= first + n) return;
  const int begin = max(first, left), end = max(begin, min(first + n, left + width));
  // end of those after the last column
  const int zeros = first + n == N ? max(end, left + width) : end;
  __global const Source* from = w + (begin - first);
  __global Weight* to = panels + (size_t)index * K * panel + (begin - column0);
  // Unsigned: LLVM 15 miscompiles the signed differences for Arm (it negates them).
  const uint stored = end - begin, filled = zeros - begin;
  for (int k = 0; k < K; k++, from += n, to += panel) {
    for (uint i = 0; i < stored; i++) STORE_WEIGHT(LOAD_SOURCE(i, from), i, to);
    for (uint i = stored; i < filled; i++) STORE_WEIGHT(0.0f, i, to);
  }
}
