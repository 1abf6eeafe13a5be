// SPDX-License-Identifier: Apache-2.0
// Cast of ONNX between the types of the engine: y[i] = (type)x[i], both row-major.
//
//   Types: all of types.clh.
//   To bool: 1 where x is not 0. Float to integer truncates; integer to narrower integer wraps.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31.
#include "lib/bf16.clh"
#include "lib/types.clh"

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

float load_float(__global const void* x, int i, int type) {
  switch (type) {
    case TYPE_F32: return ((__global const float*)x)[i];
    case TYPE_F16: return vload_half(i, (__global const half*)x);
    case TYPE_BF16: return as_float((uint)((__global const ushort*)x)[i] << 16);
    default: return (float)load_integer(x, i, type);
  }
}

int is_float(int type) { return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16; }

__kernel void cast(__global const void* x, int from, __global void* y, int to, int count,
                   int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  for (int i = first; i < last; i++) {
    if (!is_float(from) && !is_float(to)) {
      const long value = load_integer(x, i, from);
      store_integer(y, i, to, to == TYPE_BOOL ? value != 0 : value);
      continue;
    }
    const float value = load_float(x, i, from);
    switch (to) {
      case TYPE_F32: ((__global float*)y)[i] = value; break;
      case TYPE_F16: vstore_half_rte(value, i, (__global half*)y); break;
      case TYPE_BF16: ((__global ushort*)y)[i] = to_bf16(value); break;
      default: store_integer(y, i, to, to == TYPE_BOOL ? value != 0.0f : (long)value);
    }
  }
}
