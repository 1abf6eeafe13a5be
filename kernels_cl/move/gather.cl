// SPDX-License-Identifier: Apache-2.0
// Gather of ONNX along one axis: out[o][j][i] = data[o][indices[j]][i].
//
//   data [outer][axis][inner], out [outer][index_count][inner]
//   indices  s32 or s64 by index_type (types.clh); -1 is the last row
//   error    one int, set to 1 if an index was outside; the nearest row is used then, of an empty
//            axis none
//   gather_1, gather_2, gather_4, gather_8: bytes of an element.
//
// Grid: (ceil(outer * index_count / rows_per_item)), any local size. Bounds: outer * index_count <
// 2^31.
#include "lib/store16.clh"
#include "lib/types.clh"

#define GATHER(SIZE, TYPE, ANY)                                                                    \
  __kernel void gather_##SIZE(__global const TYPE* data, __global const void* indices,             \
                              int index_type, __global TYPE* out, int outer, int axis, int inner,  \
                              int index_count, __global int* error, int rows_per_item) {           \
    const int first = get_global_id(0) * rows_per_item;                                            \
    const int last = min(first + rows_per_item, outer * index_count);                              \
    if (axis < 1 && first < last) {                                                                \
      *error = 1;                                                                                  \
      return;                                                                                      \
    }                                                                                              \
    for (int row = first; row < last; row++) {                                                     \
      const int j = row % index_count;                                                             \
      long index = index_type == TYPE_S64 ? ((__global const long*)indices)[j]                     \
                                          : ((__global const int*)indices)[j];                     \
      if (index < 0) index += axis;                                                                \
      if (index < 0 || index >= axis) *error = 1;                                                  \
      index = clamp(index, 0L, (long)axis - 1);                                                    \
      __global const TYPE* from = data + ((size_t)(row / index_count) * axis + index) * inner;     \
      __global TYPE* to = out + (size_t)row * inner;                                               \
      int i = 0;                                                                                   \
      for (; i + 16 <= inner; i += 16) STORE16(ANY, vload16(0, from + i), to + i);              \
      for (; i < inner; i++) to[i] = from[i];                                                      \
    }                                                                                              \
  }

GATHER(1, uchar, Uchar16Any)
GATHER(2, ushort, Ushort16Any)
GATHER(4, uint, Uint16Any)
GATHER(8, ulong, Ulong16Any)
