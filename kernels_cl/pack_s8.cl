// SPDX-License-Identifier: Apache-2.0
// Packs int8 weights into the panels that the gemm_s8 families read, and sums their columns.
//
//   packed[ceil(N/panel)][ceil(K/group)][panel][group] = w[k][n], zeros behind N and K
//   colsum[n] = sum over k of w[k][n]
//
// Arguments: 0 w s8 [K][N], or [N][K] where transposed is 1; 1 packed s8, ceil(N/panel) * panel *
// ceil(K/group) * group bytes; 2 colsum s32 [N]; 3 N; 4 K; 5 transposed; 6 panel (at most 64);
// 7 group.  Grid: (ceil(N/panel)), any work-group size: a work-item packs one panel.

#define MAX_PANEL 64

// Whole groups of rows in columns that all exist, where rows of w lie one behind the other: loops
// of known length that become vector code.
#define PACK_WHOLE(GROUP)                                              \
  for (; k0 + GROUP <= K; k0 += GROUP, to += panel * GROUP) {          \
    __global const char* from = w + (size_t)k0 * N + column0;          \
    for (int p = 0; p < panel; p++) {                                  \
      int sum = 0;                                                     \
      for (int j = 0; j < GROUP; j++) {                                \
        const char value = from[(size_t)j * N + p];                    \
        to[p * GROUP + j] = value;                                     \
        sum += value;                                                  \
      }                                                                \
      sums[p] += sum;                                                  \
    }                                                                  \
  }

__kernel void pack_s8(__global const char* restrict w, __global char* restrict packed,
                      __global int* restrict colsum, const int N, const int K, const int transposed,
                      const int panel, const int group) {
  const int column0 = (int)get_global_id(0) * panel;
  if (column0 >= N) return;
  const int groups = (K + group - 1) / group;
  const size_t step_k = transposed ? 1 : (size_t)N, step_n = transposed ? (size_t)K : 1;
  __global char* to = packed + (size_t)get_global_id(0) * groups * panel * group;

  int sums[MAX_PANEL];
  for (int p = 0; p < panel; p++) sums[p] = 0;
  int k0 = 0;
  if (!transposed && column0 + panel <= N) {
    if (group == 4) {
      PACK_WHOLE(4)
    } else if (group == 2) {
      PACK_WHOLE(2)
    }
  }
  for (; k0 < groups * group; k0 += group) {
    for (int p = 0; p < panel; p++) {
      const int n = column0 + p;
      for (int k = k0; k < k0 + group; k++) {
        const char value = n < N && k < K ? w[k * step_k + n * step_n] : 0;
        sums[p] += value;
        *to++ = value;
      }
    }
  }
  for (int p = 0; p < panel && column0 + p < N; p++) colsum[column0 + p] = sums[p];
}
