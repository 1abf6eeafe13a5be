// SPDX-License-Identifier: Apache-2.0
// Quantizes rows of a matrix, each with its own scale from its largest magnitude, for GPUs: a
// work-group per row (row_group.clh), which stays in registers between the two.
//
// Same arguments and semantics as quantize_rows.cl; rows_per_item is not read.
// Grid: (ITEMS * rows), work-group (ITEMS, 1, 1).
// Bounds: hidden <= 4 * ITEMS * VECTORS; least / 127 is a normal number; every buffer begins at a
// multiple of 16 bytes. No unsafe math options.
#include "rows/row_group.clh"

GROUP_KERNEL void quantize_rows(__global const float* restrict x, __global uchar* restrict y,
                                int y_type, __global float* restrict scale, float least, int rows,
                                int hidden, int rows_per_item) {
  __local float shared[SHARED_WORDS];
  const bool aligned = hidden % 4 == 0;
  const int row = get_group_id(0), item = get_local_id(0);
  const size_t at = row * (size_t)hidden;
  float4 kept[VECTORS];
  float4 largest = (float4)(least);
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = (v * ITEMS + item) * 4;
    kept[v] = load_floats4(x, at + i, min(4, hidden - i), aligned);
    largest = fmax(largest, fabs(kept[v]));
  }
  const float step = group_max(max4(largest), shared) / 127.0f;
  if (item == 0) scale[row] = step;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = (v * ITEMS + item) * 4;
    store_quantized4(y, at + i, min(4, hidden - i), kept[v] / step, y_type,
                     (float4)(y_type == TYPE_U8 ? 128.0f : 0.0f), aligned);
  }
}
