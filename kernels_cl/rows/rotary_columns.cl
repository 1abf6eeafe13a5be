// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding for GPUs: a work-item turns four columns of the first half of a head of
// one row, and those half a head apart, so that neighbours load and store side by side.
//
//   x[row]  | head 0: quads of the first half | of the second half | head 1: ...
//             item 0, item 1, ...               the same items       item quads, ...
//
// Same arguments and semantics as rotary.cl; rows_per_item is not read.
// Grid: (longest sequence * heads * quads, 1, batch), quads = ceil(head_size / 8), any local size
// of one item in z, which is never padded. Bounds: head_size is even; every buffer begins at a
// multiple of 16 bytes.
#include "rows/row_group.clh"

static void store_rotated4(__global void* out, size_t row, int column, int n, float4 x, int type,
                           __global const float* inv_scale, __global const float* zero_point,
                           bool aligned) {
  if (type == TYPE_F32) {
    store_floats4(out, row + column, n, x, aligned);
    return;
  }
  store_quantized4(out, row + column, n, x * load_floats4(inv_scale, column, n, aligned), type,
                   load_floats4(zero_point, column, n, aligned), aligned);
}

__kernel void rotary(__global const float* x, __global const float* cosines,
                     __global const float* sines, __global void* out, int out_type,
                     __global const float* out_inv_scale, __global const float* out_zero_point,
                     __global const int* seq_offsets, int heads, int head_size, int table_rows,
                     int rows_per_item) {
  const int half_size = head_size / 2, quads = (half_size + 3) / 4;
  const int item = get_global_id(0), batch = get_global_id(2);
  const int begin = seq_offsets[batch], end = seq_offsets[batch + 1];
  const int place = item / (heads * quads), quad = item % (heads * quads);
  if (place >= end - begin) return;
  const int d = quad % quads * 4, e = half_size + d, n = half_size - d;
  const int column = quad / quads * head_size;
  const bool aligned = half_size % 4 == 0;
  const size_t table = ((size_t)batch * table_rows + place) * head_size;
  const size_t row = (size_t)(begin + place) * heads * head_size;
  const float4 low = load_floats4(x, row + column + d, n, aligned);
  const float4 high = load_floats4(x, row + column + e, n, aligned);
  const float4 rotated_low = low * load_floats4(cosines, table + d, n, aligned) -
                             high * load_floats4(sines, table + d, n, aligned);
  const float4 rotated_high = high * load_floats4(cosines, table + e, n, aligned) +
                              low * load_floats4(sines, table + e, n, aligned);
  store_rotated4(out, row, column + d, n, rotated_low, out_type, out_inv_scale, out_zero_point,
                 aligned);
  store_rotated4(out, row, column + e, n, rotated_high, out_type, out_inv_scale, out_zero_point,
                 aligned);
}
