// SPDX-License-Identifier: Apache-2.0
// The end of an int8 split-K GEMM: adds the partial sums and runs the epilogue. The sums are exact,
// so the result does not depend on the number of splits.
//
//   partials [splits][M][N] s32   from gemm_s8_mma.cl with PARTIAL
//   the others                    as gemm_s8_ref.cl has them
//
// Grid: (ceil(N / 4), M), any local size; work-items past these sizes do nothing. With ACTIVATION
// and OUT_TYPE given, those two are not read. Bounds: partials and out begin at multiples of 16
// bytes.
#include "gemm/epilogue4.clh"

__kernel void gemm_s8_reduce(
    __global const int* restrict partials, __global const int* restrict column_sums,
    __global const float* restrict scale, __global const float* restrict bias,
    __global const float* restrict out_inv_scale, __global const float* restrict out_zero_point,
    __global void* restrict out, const int M, const int N, const int zero_point, const int a_signed,
    const int has_bias, const int activation, const int out_type,
    __global const float* restrict x_scale, __global const uchar* restrict x_zero_point,
    __global const int* restrict row_sums, __global const int* restrict w_zero_point,
    __global const float* restrict row_scale, const int splits) {
  const int column = (int)get_global_id(0) * 4, row = get_global_id(1);
  if (column >= N || row >= M) return;
  const int zero = zero_point_of(zero_point, x_zero_point, a_signed) - (a_signed ? 0 : 128);
  const Columns4 c = load_columns4(column, N, zero, column_sums, scale, bias, out_inv_scale,
                                   out_zero_point, has_bias, OUT_TYPE, x_scale, w_zero_point);
  int4 sums = 0;
  for (int split = 0; split < splits; split++, partials += (size_t)M * N)
    sums += load4_s32(partials + (size_t)row * N, column, N);
  finish4_s8(sums, &c, row, column, N, out, ACTIVATION, OUT_TYPE, row_sums, w_zero_point,
             row_scale);
}
