// SPDX-License-Identifier: Apache-2.0
// GatherElements of ONNX: out[i] is the element of `data` at the place of i, with its position
// along one axis replaced by indices[i].
//
//   indices, out  row-major of the shape dims[rank];  indices s32 or s64 by index_type (types.clh),
//                                                     -1 is the last
//   shape         int: dims[rank], strides of `data` with 0 for the axis, strides of `indices` (not
//                 read)
//   extent, axis_stride   of `data` along the axis
//   error         one int, set to 1 if an index was outside; the nearest place is used then
//   gather_elements_1, _2, _4, _8: bytes of an element.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31.
#include "lib/strided.clh"
#include "lib/types.clh"

#define GATHER_ELEMENTS(SIZE, TYPE)                                                                \
  __kernel void gather_elements_##SIZE(__global const TYPE* data, __global const void* indices,    \
                                       int index_type, __global TYPE* out,                         \
                                       __global const int* shape, int rank, int extent,            \
                                       int axis_stride, __global int* error, int count,            \
                                       int chunk) {                                                \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                  \
    for (int i = first; i < last; i++) {                                                           \
      long index = index_type == TYPE_S64 ? ((__global const long*)indices)[i]                     \
                                          : ((__global const int*)indices)[i];                     \
      if (index < 0) index += extent;                                                              \
      if (index < 0 || index >= extent) *error = 1;                                                \
      index = clamp(index, 0L, (long)extent - 1);                                                  \
      out[i] = data[place_of(i, rank, shape, shape + rank) + index * axis_stride];                 \
    }                                                                                              \
  }

GATHER_ELEMENTS(1, uchar)
GATHER_ELEMENTS(2, ushort)
GATHER_ELEMENTS(4, uint)
GATHER_ELEMENTS(8, ulong)
