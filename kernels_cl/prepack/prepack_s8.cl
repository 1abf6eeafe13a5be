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
// Grid: panels that hold a column of w, any work-group size: a work-item packs one of them.

#define MAX_PANEL 64

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
  const int index = first / panel + (int)get_global_id(0), column0 = index * panel;
  const int begin = max(first, column0), end = min(first + n, column0 + panel);
  const int zeros = end == N ? column0 + panel : end;  // end of those after the last column
  const int groups = (K + group - 1) / group;
  __global char* to = packed + (size_t)index * groups * panel * group;

  int sums[MAX_PANEL];
  for (int p = 0; p < panel; p++) sums[p] = 0;
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
      for (int j = 0; j < group; j++) {
        const bool exists = column < end && k0 + j < K;
        const char value = exists ? w[(size_t)(k0 + j) * n + (column - first)] : 0;
        sums[p] += value;
        to[p * group + j] = value;
      }
    }
  }
  for (int column = begin; column < end; column++) colsum[column] = sums[column - column0];
}
