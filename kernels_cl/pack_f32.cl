// SPDX-License-Identifier: Apache-2.0
// Packs fp32 weights into the panels that the gemm_f32 families read.
//
//   packed[ceil(N/panel)][K][panel] = w[k][n], zeros behind N; f32, or f16 with -DB_HALF=1 (rounded
//   half to even)
//
// Arguments: 0 w f32 [K][N], or [N][K] where transposed is 1; 1 packed, ceil(N/panel) * panel * K
// elements; 2 N; 3 K; 4 transposed; 5 panel.
// Grid: (ceil(N/panel)), any work-group size: a work-item packs one panel.

#ifndef B_HALF
#define B_HALF 0  // 1: store in half precision
#endif

#if B_HALF
typedef half Weight;
#define STORE_WEIGHT(value, i, to) vstore_half_rte((value), (i), (to))
#else
typedef float Weight;
#define STORE_WEIGHT(value, i, to) ((to)[i] = (value))
#endif

__kernel void pack_f32(__global const float* restrict w, __global Weight* restrict packed,
                       const int N, const int K, const int transposed, const int panel) {
  const int column0 = (int)get_global_id(0) * panel;
  if (column0 >= N) return;
  const size_t step_k = transposed ? 1 : (size_t)N, step_n = transposed ? (size_t)K : 1;
  __global Weight* to = packed + (size_t)get_global_id(0) * K * panel;
  for (int k = 0; k < K; k++) {
    for (int p = 0; p < panel; p++) {
      const int n = column0 + p;
      const float value = n < N ? w[k * step_k + n * step_n] : 0.0f;
      STORE_WEIGHT(value, (size_t)k * panel + p, to);
    }
  }
}
