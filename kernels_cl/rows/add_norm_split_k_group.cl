// SPDX-License-Identifier: Apache-2.0
// The end of an int8 split-K GEMM before a LayerNorm or RMSNorm: adds the partial sums, the bias
// and the residual, normalizes and quantizes. A work-group per row (row_group.clh), which never
// leaves the registers.
//
//   s[i] = sum over splits of partials[split][row][i] - zero * column_sums[i]    exact
//   x[i] = s[i] * scale[i] + bias[i]                                        as gemm_s8_reduce.cl
//   sum, out, q, r of x + residual                                          as add_norm_group.cl
//
//   partials [splits][rows][hidden] s32    from gemm_s8_mma.cl with PARTIAL
//   column_sums, scale, bias [hidden]; bias may be null
//   the others as add_norm.cl has them
//
// The results are those of gemm_s8_reduce.cl and add_norm_group.cl, bit by bit.
// Grid: (ITEMS * rows), work-group (ITEMS, 1, 1).
// Bounds: hidden <= 4 * ITEMS * VECTORS; every buffer begins at a multiple of 16 bytes. No unsafe
// math options.
#include "rows/row_norm_group.clh"

// Elements i .. i + n - 1 (n <= 4) of data, 0 in the lanes from n on.
static int4 load_sums4(__global const int* data, size_t i, int n, bool aligned) {
  if (aligned) return ((__global const int4*)data)[i / 4];
  return (int4)(data[i], n > 1 ? data[i + 1] : 0, n > 2 ? data[i + 2] : 0,
                n > 3 ? data[i + 3] : 0);
}

GROUP_KERNEL void add_norm_split_k(
    __global const int* restrict partials, __global const int* restrict column_sums,
    __global const float* restrict scale, __global const float* restrict bias, int zero_point,
    int a_signed, int splits, __global const void* restrict residual, int residual_type,
    __global const float* restrict residual_scale,
    __global const float* restrict residual_zero_point, __global const float* restrict gamma,
    __global const float* restrict beta, float eps, int rms, __global float* sum,
    NORM_RESULTS, int rows, int hidden) {
  __local float shared[3 * SHARED_WORDS];
  const bool aligned = hidden % 4 == 0;
  const size_t at = get_group_id(0) * (size_t)hidden, split_size = rows * (size_t)hidden;
  const int zero = zero_point - (a_signed ? 0 : 128);  // a is stored as s8
  float4 kept[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = (v * ITEMS + (int)get_local_id(0)) * 4, n = min(4, hidden - i);
    kept[v] = (float4)(0.0f);
    if (n <= 0) continue;
    int4 sums = -zero * load_sums4(column_sums, i, n, aligned);
    for (int split = 0; split < splits; split++)
      sums += load_sums4(partials, split * split_size + at + i, n, aligned);
    const float4 offset = bias ? load_floats4(bias, i, n, aligned) : (float4)(0.0f);
    kept[v] = fma(convert_float4(sums), load_floats4(scale, i, n, aligned), offset);
    if (residual)
      kept[v] += load_columns4(residual, at, i, n, residual_type, residual_scale,
                               residual_zero_point, aligned);
  }
  finish_norm(kept, shared, at, hidden, eps, rms, gamma, beta, sum, out, NORM_QUANTIZED);
}
