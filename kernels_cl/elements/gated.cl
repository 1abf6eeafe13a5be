// SPDX-License-Identifier: Apache-2.0
// The middle of a gated feed-forward part: one matrix is activated and multiplied with another.
//
//   out = activation(gate) * up       activation 0: none; 5: SiLU, x / (1 + exp(-x))
//
//   gate, up  f32 [rows][columns], count = rows * columns
//   out       f32, or u8 or s8 by out_type: round(out * out_inv_scale[column]) +
//             out_zero_point[column], half to even, saturated; both are null where it is f32
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. No unsafe math options.
#include "lib/activation.clh"
#include "persistent/place.clh"
#include "rows/row.clh"

KERNEL gated(__global const float* gate, __global const float* up, int activation,
             __global void* out, int out_type, __global const float* out_inv_scale,
             __global const float* out_zero_point, int count, int columns,
             int chunk PLACE_PARAMETER) {
  int i = PLACE.id.x * chunk;
  const int last = min(i + chunk, count);
  while (i < last) {  // what lies in one row
    const int column = i % columns, begin = i - column, stop = min(last, begin + columns);
    for (int c = column; i < stop; i += 16, c += 16) {
      const int n = min(16, stop - i);
      float16 x = load_floats16(gate, i, n);
      if (activation == ACTIVATION_SILU) x = x / (1.0f + exp_v16(-x));
      x *= load_floats16(up, i, n);
      if (out_type == TYPE_F32)
        store_row16(out, i, n, x);
      else
        store_columns16(out, begin, c, n, x, out_type, out_inv_scale, out_zero_point);
    }
    i = stop;
  }
}

MERGEABLE(gated, (POINTER(0), POINTER(1), INTEGER(2), POINTER(3), INTEGER(4), POINTER(5),
                  POINTER(6), INTEGER(7), INTEGER(8), INTEGER(9), STEP_PLACE))
