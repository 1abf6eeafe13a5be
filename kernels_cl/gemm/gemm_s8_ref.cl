// SPDX-License-Identifier: Apache-2.0
// int8 GEMM, reference: one output per work-item, one sum along K, plain scalar arithmetic.
//
//   sum = sum over k of (a[m][k] - zero_point) * (b[k][n] - w_zero_point[n])      exact in int32
//   y   = activation(sum * scale[n] * x_scale * row_scale[m] + bias[n])
//   out = y (f32), or sum (s32), or saturate(round_half_even(y * out_inv_scale[n]) +
//         out_zero_point[n]) (u8, s8)
//
// Arguments of every gemm_s8_*.cl, in this order; sizes are runtime values, all flags are uniform:
//    0 a               u8 or s8 [M][K], row-major
//    1 b               s8, panels by prepack_s8.cl in the layout of the variant
//    2 column_sums     s32 [N]: sum of b along K, from prepack_s8.cl
//    3 scale           f32 [N]: scale of column n of b, times that of a unless x_scale is given
//                      (unused for s32)
//    4 bias            f32 [N], null where has_bias is 0
//    5 out_inv_scale   f32 [N]: 1 / output scale, null unless out is u8 or s8
//    6 out_zero_point  f32 [N]: integers of the range of the output type, null likewise
//    7 out             [M][N] of the output type, row-major
//    8 M   9 N   10 K  (K at most 65,793: int32 sums)
//   11 zero_point      of a, in its own type
//   12 a_signed        0: a is u8, 1: a is s8
//   13 has_bias        0 or 1
//   14 activation      ACTIVATION_* of activation.clh
//   15 out_type        TYPE_F32, TYPE_S32, TYPE_U8 or TYPE_S8 of types.clh
//   16 x_scale         one f32 that an earlier launch has made, null for 1
//   17 x_zero_point    one byte likewise, in place of zero_point; null: zero_point counts
//   18 row_sums        s32 [M], from row_sums.cl: sum of a - zero point along K; null like 19
//   19 w_zero_point    s32 [N]: zero points of the columns of b, null where all are 0
//   20 row_scale       f32 [M]: scales of the rows of a, made by an earlier launch; null where all
//                      are 1
// Nothing is read outside of the given sizes, and nothing but out[0 .. M*N) is written.
//
// Layout: panel width 1, K group 1: B[N][K].  Tile: 1 row.
// Grid: (M, N), any work-group size.
#include "gemm/epilogue.clh"

__kernel void gemm_s8(GEMM_S8_PARAMETERS) {
  const int m = (int)get_global_id(0), n = (int)get_global_id(1);
  if (m >= M || n >= N) return;

  const int a_zero = zero_point_of(zero_point, x_zero_point, a_signed);
  const int b_zero = w_zero_point ? w_zero_point[n] : 0;
  int sum = 0;
  for (int k = 0; k < K; k++) {
    const uchar byte = a[(size_t)m * K + k];
    const int value = a_signed ? (int)as_char(byte) : (int)byte;
    sum += (value - a_zero) * (b[(size_t)n * K + k] - b_zero);
  }

  const size_t at = (size_t)m * N + n;
  if (out_type == TYPE_S32) {
    ((__global int*)out)[at] = sum;
    return;
  }
  const float factor =
      scale[n] * (x_scale ? *x_scale : 1.0f) * (row_scale ? row_scale[m] : 1.0f);
  const float y = activate_ref((float)sum * factor + (has_bias ? bias[n] : 0.0f), activation);
  if (out_type == TYPE_F32) {
    ((__global float*)out)[at] = y;
    return;
  }
  const float q = rint(y * out_inv_scale[n]) + out_zero_point[n];
  if (out_type == TYPE_U8)
    ((__global uchar*)out)[at] = convert_uchar_sat(q);
  else
    ((__global char*)out)[at] = convert_char_sat(q);
}
