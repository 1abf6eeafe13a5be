// SPDX-License-Identifier: Apache-2.0
// Cast of ONNX between the types of the engine: y[i] = (type)x[i], both row-major.
//
//   Types: all of types.clh.
//   To bool: 1 where x is not 0. Float to integer truncates; integer to narrower integer wraps.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31.
#include "types.clh"

long load_integer(__global const void* x, int i, int type) {
  switch (type) {
    case TYPE_S8: return ((__global const char*)x)[i];
    case TYPE_S32: return ((__global const int*)x)[i];
    case TYPE_S64: return ((__global const long*)x)[i];
    default: return ((__global const uchar*)x)[i];
  }
}

void store_integer(__global void* y, int i, int type, long value) {
  switch (type) {
    case TYPE_S32: ((__global int*)y)[i] = (int)value; break;
    case TYPE_S64: ((__global long*)y)[i] = value; break;
    default: ((__global uchar*)y)[i] = (uchar)value;
  }
}

__kernel void cast(__global const void* x, int from, __global void* y, int to, int count, int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  const int from_float = from == TYPE_F32 || from == TYPE_F16;
  const int to_float = to == TYPE_F32 || to == TYPE_F16;
  for (int i = first; i < last; i++) {
    if (!from_float && !to_float) {
      const long value = load_integer(x, i, from);
      store_integer(y, i, to, to == TYPE_BOOL ? value != 0 : value);
      continue;
    }
    const float value = from == TYPE_F32   ? ((__global const float*)x)[i]
                        : from == TYPE_F16 ? vload_half(i, (__global const half*)x)
                                           : (float)load_integer(x, i, from);
    if (to == TYPE_F32)
      ((__global float*)y)[i] = value;
    else if (to == TYPE_F16)
      vstore_half_rte(value, i, (__global half*)y);
    else
      store_integer(y, i, to, to == TYPE_BOOL ? value != 0.0f : (long)value);
  }
}
