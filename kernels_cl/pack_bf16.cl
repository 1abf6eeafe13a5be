// SPDX-License-Identifier: Apache-2.0
// Packs fp32 weights as bf16 (rounded half to even) into the panels that gemm_bf16_x86.cl reads.
//
//   packed[ceil(N/panel)][ceil(K/2)][panel][2] = w[k][n], zeros behind N and K
//
// Arguments: 0 w f32 [K][N], or [N][K] where transposed is 1; 1 packed, ceil(N/panel) * panel *
// ceil(K/2) * 2 elements; 2 N; 3 K; 4 transposed; 5 panel.
// Grid: (ceil(N/panel)), any work-group size: a work-item packs one panel.

// The upper half of a float, rounded half to even; NaN keeps a bit of its fraction.
static ushort to_bf16(float value) {
  const uint bits = as_uint(value);
  if (isnan(value)) return (ushort)(bits >> 16 | 0x40);
  return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__kernel void pack_bf16(__global const float* restrict w, __global ushort* restrict packed,
                        const int N, const int K, const int transposed, const int panel) {
  const int column0 = (int)get_global_id(0) * panel, pairs = (K + 1) / 2;
  if (column0 >= N) return;
  const size_t step_k = transposed ? 1 : (size_t)N, step_n = transposed ? (size_t)K : 1;
  __global ushort* to = packed + (size_t)get_global_id(0) * pairs * panel * 2;
  for (int k = 0; k < 2 * pairs; k++) {
    for (int p = 0; p < panel; p++) {
      const int n = column0 + p;
      const float value = n < N && k < K ? w[k * step_k + n * step_n] : 0.0f;
      to[((size_t)(k / 2) * panel + p) * 2 + (k & 1)] = to_bf16(value);
    }
  }
}
