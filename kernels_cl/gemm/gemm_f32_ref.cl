// SPDX-License-Identifier: Apache-2.0
// fp32 GEMM, reference: out[m][n] = activation(sum over k of a[m][k] * b[k][n] + bias[n]).
//
// Arguments of every gemm_f32_*.cl, in this order; sizes are runtime values, all flags are uniform:
//    0 a            f32 [M][K], row-major
//    1 b            f32, or f16 with -DB_HALF=1: panels by prepack_f32.cl in the layout of the
//                   variant
//    2 bias         f32 [N], null where has_bias is 0
//    3 out          f32 [M][N], row-major
//    4 M   5 N   6 K
//    7 has_bias     0 or 1
//    8 activation   ACTIVATION_* of activation.clh
// Nothing is read outside of the given sizes, and nothing but out[0 .. M*N) is written.
//
// Layout: panel width 1, K group 1: B[N][K].  Tile: 1 row.
// Grid: (M, N), any work-group size.
#include "gemm/parameters.clh"
#include "gemm/weights.clh"
#include "lib/activation.clh"

__kernel void gemm_f32(GEMM_F32_PARAMETERS(Weight)) {
  const int m = (int)get_global_id(0), n = (int)get_global_id(1);
  if (m >= M || n >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; k++)
    sum = fma(a[(size_t)m * K + k], LOAD_WEIGHT((size_t)n * K + k, b), sum);
  out[(size_t)m * N + n] = activate_ref(sum + (has_bias ? bias[n] : 0.0f), activation);
}
