// SPDX-License-Identifier: Apache-2.0
// LayerNorm or RMSNorm of a sum, with quantization of the result, for GPUs: one pass over memory, a
// work-group per row (row_group.clh), which stays in registers from its sum through its squares to
// its results.
//
// Same arguments and semantics as add_norm.cl; rows_per_item is not read.
// Grid: (ITEMS * rows), work-group (ITEMS, 1, 1).
// Bounds: hidden <= 4 * ITEMS * VECTORS; every buffer begins at a multiple of 16 bytes. No unsafe
// math options.
#include "rows/row_norm_group.clh"

GROUP_KERNEL void add_norm(
    __global const void* restrict x, int x_type, __global const float* restrict x_scale,
    __global const float* restrict x_zero_point, __global const void* restrict residual,
    int residual_type, __global const float* restrict residual_scale,
    __global const float* restrict residual_zero_point,
    __global const float* restrict gamma, __global const float* restrict beta, float eps,
    int rms, __global float* sum, NORM_RESULTS, int rows, int hidden,
    int rows_per_item) {
  __local float shared[3 * SHARED_WORDS];
  const bool aligned = hidden % 4 == 0;
  const size_t at = get_group_id(0) * (size_t)hidden;
  float4 kept[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = (v * ITEMS + (int)get_local_id(0)) * 4, n = min(4, hidden - i);
    kept[v] = (float4)(0.0f);
    if (n <= 0) continue;
    kept[v] = load_columns4(x, at, i, n, x_type, x_scale, x_zero_point, aligned);
    if (residual)
      kept[v] += load_columns4(residual, at, i, n, residual_type, residual_scale,
                               residual_zero_point, aligned);
  }
  finish_norm(kept, shared, at, hidden, eps, rms, gamma, beta, sum, out, NORM_QUANTIZED);
}
