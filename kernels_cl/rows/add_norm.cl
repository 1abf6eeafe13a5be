// SPDX-License-Identifier: Apache-2.0
// LayerNorm or RMSNorm of a sum, with quantization of the result: one pass over memory, one
// work-item per row.
//
//   s[i]   = x[i] + residual[i]
//   out[i] = (s[i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i]     rms 0: LayerNorm
//   out[i] = s[i] / sqrt(mean of the squares + eps) * gamma[i] + beta[i]  rms 1: RMSNorm
//   q[i]   = round(out[i] * q_inv_scale[i]) + q_zero_point[i], half to even, saturated; r the same
//
//   x, residual       [rows][hidden]: f32 (0), u8 (1) or s8 (2); integers mean
//                     (x - x_zero_point[i]) * x_scale[i]
//   gamma, beta, scales and zero points [hidden] f32
//   sum, out          [rows][hidden] f32: s and out
//   q, r              [rows][hidden], q_type and r_type 1 u8 or 2 s8; q_type may be 7 bf16, of out
//                     itself
//   residual, beta, sum, out, q and r may be null, and the scales and zero points of what is null
//   or f32.
//
// The row stays in private memory for its passes if hidden <= ROW_MAX; otherwise it is reread
// in blocks. The variance is computed from the differences to the mean.
// Grid: (ceil(rows / rows_per_item)), any local size. Bounds: none. No unsafe math options.
#include "persistent/place.clh"
#include "rows/row_norm.clh"

// Elements first .. first + count - 1 of s, of the row that begins at element `at`.
ROW_INLINE void add_terms(float16* kept, __global const void* x, int x_type,
                          __global const float* x_scale, __global const float* x_zero_point,
                          __global const void* residual, int residual_type,
                          __global const float* residual_scale,
                          __global const float* residual_zero_point,
                          size_t at, int first, int count) {
  if (residual && x_type == TYPE_F32 && residual_type == TYPE_F32 && count % 16 == 0) {
    __global const float* a = (__global const float*)x + at + first;
    __global const float* b = (__global const float*)residual + at + first;
    for (int v = 0; v < count / 16; v++)
      kept[v] = LOAD16(Float16Any, v, a) + LOAD16(Float16Any, v, b);
    return;
  }
  add_term(kept, 1, x, at + first, count, x_type, x_scale + first, x_zero_point + first);
  if (residual)
    add_term(kept, 0, residual, at + first, count, residual_type, residual_scale + first,
             residual_zero_point + first);
}

KERNEL add_norm(__global const void* x, int x_type, __global const float* x_scale,
                __global const float* x_zero_point, __global const void* residual,
                int residual_type, __global const float* residual_scale,
                __global const float* residual_zero_point,
                __global const float* gamma, __global const float* beta, float eps, int rms,
                __global float* sum, NORM_RESULTS, int rows, int hidden, int rows_per_item
                PLACE_PARAMETER) {
  float16 kept[ROW_MAX / 16];
  const int begin = PLACE.id.x * rows_per_item, end = min(begin + rows_per_item, rows);

  for (int row = begin; row < end; row++) {
    const size_t at = (size_t)row * hidden;
    float mean = 0.0f, factor = 0.0f;
    // 0: the mean, 1: the squares, 2: the results; a row of one block is made once.
    for (int pass = rms; pass < 3; pass++) {
      float total = 0.0f;
      for (int first = 0; first < hidden; first += ROW_MAX) {
        const int count = min(ROW_MAX, hidden - first);
        if (pass == rms || hidden > ROW_MAX)
          add_terms(kept, x, x_type, x_scale, x_zero_point, residual, residual_type, residual_scale,
                    residual_zero_point, at, first, count);
        if (pass == rms && sum) store_floats(kept, sum + at + first, count);
        if (pass == 0) total += sum_of(kept, count);
        if (pass == 1) total += squares_of(kept, count, mean);
        if (pass < 2) continue;
        finish_row(kept, at, first, count, mean, factor, gamma, beta, out, NORM_QUANTIZED);
      }
      if (pass == 0) mean = total / hidden;
      if (pass == 1) factor = 1.0f / sqrt(total / hidden + eps);
    }
  }
}

ALWAYS_MERGED(add_norm, (POINTER(0), INTEGER(1), POINTER(2), POINTER(3), POINTER(4), INTEGER(5),
                         POINTER(6), POINTER(7), POINTER(8), POINTER(9), FLOAT(10), INTEGER(11),
                         POINTER(12), POINTER(13), POINTER(14), INTEGER(15), POINTER(16),
                         POINTER(17), POINTER(18), INTEGER(19), POINTER(20), POINTER(21),
                         INTEGER(22), INTEGER(23), INTEGER(24), STEP_PLACE))
