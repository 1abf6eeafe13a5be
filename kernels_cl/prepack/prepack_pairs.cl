// SPDX-License-Identifier: Apache-2.0
// Prepacks columns of fp32 weights as pairs of bf16, or of f16 with -DB_HALF=1, rounded half to
// even, into the panels that gemm_bf16_x86.cl and gemm_f16_matrix.cl read.
//
//   w [K][n]                    panels [ceil(N/panel)][ceil(K/2)][panel][2]
//
//   k = 0   a0 b0 c0 ..         | a0 a1 | b0 b1 | c0 c1 | ..    columns a, b, c of a panel, K = 3;
//   k = 1   a1 b1 c1 ..   --->  | a2  0 | b2  0 | c2  0 | ..    zeros past N and K
//   k = 2   a2 b2 c2 ..
//
// w holds columns first .. first + n - 1 of the N columns of all; see prepack_f32.cl.
//
// Arguments: 0 w [K][n] f32, or f16 with -DW_HALF=1, at any address; 1 panels, ceil(N/panel) *
// panel * ceil(K/2) * 2 elements; 2 n; 3 K; 4 panel; 5 first; 6 N.
// Grid: an item for each panel that holds a column of w, or panel / ITEM_COLUMNS of them where that
// is not 0; any work-group size.

#include "lib/bf16.clh"
#include "prepack/weights.clh"

#ifndef B_HALF
#define B_HALF 0  // 1: f16
#endif

__kernel void prepack_pairs(__global const Source* restrict w, __global ushort* restrict panels,
                         const int n, const int K, const int panel, const int first, const int N) {
  const int width = ITEM_COLUMNS ? ITEM_COLUMNS : panel, parts = panel / width;
  const int item = get_global_id(0), index = first / panel + item / parts;
  const int column0 = index * panel, left = column0 + item % parts * width;
  if (column0 >= first + n) return;
  const int pairs = (K + 1) / 2;
  const int begin = max(first, left), end = max(begin, min(first + n, left + width));
  const int zeros = first + n == N ? left + width : end;  // end of those after the last column
  __global ushort* to = panels + (size_t)index * pairs * panel * 2;
  for (int k = 0; k < 2 * pairs; k++) {
    for (int column = begin; column < zeros; column++) {
      const bool exists = column < end && k < K;
      const size_t i = (size_t)k * n + (column - first);
      const size_t at = ((size_t)(k / 2) * panel + (column - column0)) * 2 + (k & 1);
#if B_HALF
      vstore_half_rte(exists ? LOAD_SOURCE(i, w) : 0.0f, at, (__global half*)to);
#else
      to[at] = exists ? to_bf16(LOAD_SOURCE(i, w)) : 0;
#endif
    }
  }
}
