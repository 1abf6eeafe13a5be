// SPDX-License-Identifier: Apache-2.0
// Row sums of a quantized matrix, which GEMMs need if weights have zero points:
//
//   sum_k (a - za) (w - zw) = sum_k (a - za) w - zw * sums[m],   sums[m] = sum_k (a[m][k] - za)
//
//   a [M][K] u8 or s8 by a_type; its zero point is zero_point, or the byte at x_zero_point where
//   that is not null. sums s32 [M].
//
// Grid: (ceil(M / rows_per_item)), any local size. Bounds: M * K bytes, 255 * K < 2^31.
#include "rows/row.clh"

__kernel void row_sums(__global const uchar* a, int a_type, int zero_point,
                       __global const uchar* x_zero_point, __global int* sums, int M, int K,
                       int rows_per_item) {
  const int first = get_global_id(0) * rows_per_item, last = min(first + rows_per_item, M);
  const int flip = a_type == TYPE_S8 ? 0x80 : 0;  // s8: (byte ^ 0x80) - 0x80
  if (x_zero_point) zero_point = a_type == TYPE_S8 ? (int)as_char(*x_zero_point) : *x_zero_point;
  for (int row = first; row < last; row++) {
    __global const uchar* from = a + (size_t)row * K;
    int16 partial = 0;
    int k = 0;
    for (; k + 16 <= K; k += 16) partial += convert_int16(vload16(0, from + k)) ^ flip;
    for (; k < K; k++) partial.s0 += from[k] ^ flip;
    const int8 sum8 = partial.lo + partial.hi;
    const int4 sum4 = sum8.lo + sum8.hi;
    sums[row] = sum4.x + sum4.y + sum4.z + sum4.w - K * (zero_point + flip);
  }
}
