// SPDX-License-Identifier: Apache-2.0
// Packs columns of int8 weights into the panels that the gemm_s8 variants read, and sums them.
//
//   packed[ceil(N/panel)][ceil(K/group)][panel][group] = w[k][column - first], zero-padded past N
//   and K colsum[column] = sum over k of w[k][column - first]
//
// w holds columns first .. first + n - 1 of the N columns of all; see prepack_f32.cl.
//
// Arguments: 0 w s8 [K][n]; 1 packed s8, ceil(N/panel) * panel * ceil(K/group) * group bytes;
// 2 colsum s32 [N]; 3 n; 4 K; 5 panel (at most 64); 6 group; 7 first; 8 N.
// Grid: an item for each panel that holds a column of w, or panel / ITEM_COLUMNS of them where that
// is not 0; any work-group size.

#ifndef ITEM_COLUMNS
#define ITEM_COLUMNS 0  // columns of a work-item, a divisor of the panel; 0: all of a panel
#endif

#define MAX_PANEL (ITEM_COLUMNS ? ITEM_COLUMNS : 64)

// Whole groups of rows in panels that w fills: loops of known length that become vector code.
#define PACK_WHOLE(GROUP)                                               \
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

__kernel void prepack_s8(__global const char* restrict w, __global char* restrict packed,
                      __global int* restrict colsum, const int n, const int K, const int panel,
                      const int group, const int first, const int N) {
  const int width = ITEM_COLUMNS ? ITEM_COLUMNS : panel, parts = panel / width;
  const int item = get_global_id(0), index = first / panel + item / parts;
  const int column0 = index * panel, left = column0 + item % parts * width;
  if (column0 >= first + n) return;
  const int begin = max(first, left), end = max(begin, min(first + n, left + width));
  const int zeros = first + n == N ? left + width : end;  // end of those after the last column
  const int groups = (K + group - 1) / group;
  __global char* to = packed + (size_t)index * groups * panel * group;

  int sums[MAX_PANEL];
  for (int p = 0; p < MAX_PANEL; p++) sums[p] = 0;
  int k0 = 0;
  if (end - begin == panel) {
    if (group == 4) {
      PACK_WHOLE(4)
    } else if (group == 2) {
      PACK_WHOLE(2)
    }
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
  for (int column = begin; column < end; column++) colsum[column] = sums[column - left];
}
