// SPDX-License-Identifier: Apache-2.0
// LayerNorm of a sum, with quantization of the result: one pass over memory, one work-item a row.
//
//   s[i]   = x[i] + residual[i] + bias[i]
//   out[i] = (s[i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i]
//   q[i]   = round(out[i] * q_inv_scale[i]) + q_zero_point[i], half to even, saturated; r the same
//
//   x, residual       [rows][hidden]: f32 (0), u8 (1) or s8 (2); integers mean
//                     (x - x_zero_point[i]) * x_scale[i]
//   bias, gamma, beta, scales and zero points [hidden] f32
//   out               [rows][hidden] f32;  q, r [rows][hidden], q_type and r_type 1 u8 or 2 s8
//   residual, bias, beta, out, q and r may be null, and the scales and zero points of what is null
//   or f32.
//
// The row stays in private memory between its three readings if hidden <= ROW_MAX, and is read again
// otherwise. The variance is that of the differences to the mean.
// Grid: (ceil(rows / rows_per_item)), any local size. Bounds: none. No unsafe math options.
#include "row.clh"

#ifndef ROW_MAX
#define ROW_MAX 4096  // longest row kept in private memory
#endif

ROW_INLINE float16 load_sum16(__global const void* x, int x_type, __global const float* x_scale,
                   __global const float* x_zero_point, __global const void* residual,
                   int residual_type, __global const float* residual_scale,
                   __global const float* residual_zero_point, __global const float* bias, size_t at,
                   int i, int n) {
  float16 s = load_columns16(x, at, i, n, x_type, x_scale, x_zero_point);
  if (residual)
    s += load_columns16(residual, at, i, n, residual_type, residual_scale, residual_zero_point);
  if (bias) s += load_floats16(bias, i, n);
  return s;
}

__kernel void add_norm(
    __global const void* x, int x_type, __global const float* x_scale,
    __global const float* x_zero_point, __global const void* residual, int residual_type,
    __global const float* residual_scale, __global const float* residual_zero_point,
    __global const float* bias, __global const float* gamma, __global const float* beta, float eps,
    __global float* out, __global uchar* q, int q_type, __global const float* q_inv_scale,
    __global const float* q_zero_point, __global uchar* r, int r_type,
    __global const float* r_inv_scale, __global const float* r_zero_point, int rows, int hidden,
    int rows_per_item) {
  float16 kept[ROW_MAX / 16];
  const int is_kept = hidden <= ROW_MAX;
  const int first = get_global_id(0) * rows_per_item, last = min(first + rows_per_item, rows);

  for (int row = first; row < last; row++) {
    const size_t at = (size_t)row * hidden;
    float16 sum = 0.0f;
    for (int i = 0; i < hidden; i += 16) {
      const float16 s =
          load_sum16(x, x_type, x_scale, x_zero_point, residual, residual_type, residual_scale,
                     residual_zero_point, bias, at, i, min(16, hidden - i));
      sum += s;
      if (is_kept) kept[i / 16] = s;
    }
    const float mean = sum16(sum) / hidden;

    float16 squares = 0.0f;
    for (int i = 0; i < hidden; i += 16) {
      const int n = min(16, hidden - i);
      float16 s = is_kept ? kept[i / 16]
                          : load_sum16(x, x_type, x_scale, x_zero_point, residual, residual_type,
                                       residual_scale, residual_zero_point, bias, at, i, n);
      s = LANE < n ? s - mean : (float16)(0.0f);
      squares = fma(s, s, squares);
    }
    const float factor = 1.0f / sqrt(sum16(squares) / hidden + eps);

    for (int i = 0; i < hidden; i += 16) {
      const int n = min(16, hidden - i);
      const float16 s = is_kept ? kept[i / 16]
                                : load_sum16(x, x_type, x_scale, x_zero_point, residual,
                                             residual_type, residual_scale, residual_zero_point,
                                             bias, at, i, n);
      float16 y = (s - mean) * factor * load_floats16(gamma, i, n);
      if (beta) y += load_floats16(beta, i, n);
      if (out) store_row16(out, at + i, n, y);
      if (q) store_columns16(q, at, i, n, y, q_type, q_inv_scale, q_zero_point);
      if (r) store_columns16(r, at, i, n, y, r_type, r_inv_scale, r_zero_point);
    }
  }
}
