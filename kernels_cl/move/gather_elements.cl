// SPDX-License-Identifier: Apache-2.0
// GatherElements of ONNX: out[i] is the element of `data` at the place of i, with its position
// along one axis replaced by indices[i].
//
//   indices, out  row-major of the shape dims[rank];  indices s32 or s64 by index_type (types.clh),
//                                                     -1 is the last
//   shape         int: dims[rank], strides of `data` with 0 for the axis, strides of `indices` (not
//                 read)
//   extent, axis_stride   of `data` along the axis
//   error         one int, set to 1 if an index was outside; the nearest place is used then, of an
//                 empty axis none
//   gather_elements_1, _2, _4, _8: bytes of an element.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31.
#include "lib/strided.clh"
#include "lib/types.clh"

// Indices i .. i + 15, or index i.
static long16 load_indices16(__global const void* indices, int i, int type) {
  return type == TYPE_S64 ? vload16(0, (__global const long*)indices + i)
                          : convert_long16(vload16(0, (__global const int*)indices + i));
}
static long load_index(__global const void* indices, int i, int type) {
  return type == TYPE_S64 ? ((__global const long*)indices)[i] : ((__global const int*)indices)[i];
}

// Runs along the innermost dimension have one place in `data`. 16 elements at a time: what is
// loaded lies anywhere, and with few instructions between the loads several are on their way.
#define GATHER_ELEMENTS(SIZE, TYPE)                                                                \
  __kernel void gather_elements_##SIZE(__global const TYPE* data, __global const void* indices,    \
                                       int index_type, __global TYPE* out,                         \
                                       __global const int* shape, int rank, int extent,            \
                                       int axis_stride, __global int* error, int count,            \
                                       int chunk) {                                                \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                  \
    const int step = inner_stride(rank, shape + rank);                                             \
    const long16 steps = step * (long16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);    \
    long16 outside = 0;                                                                            \
    int any_outside = 0, run;                                                                      \
    if (extent < 1 && first < last) {                                                              \
      *error = 1;                                                                                  \
      return;                                                                                      \
    }                                                                                              \
    for (int i = first; i < last; i += run) {                                                      \
      run = run_from(i, last, rank, shape);                                                        \
      __global const TYPE* from = data + place_of(i, rank, shape, shape + rank);                   \
      int j = 0;                                                                                   \
      for (; j + 16 <= run; j += 16, from += 16 * step) {                                          \
        long16 at = load_indices16(indices, i + j, index_type);                                    \
        at = at < 0 ? at + extent : at;                                                            \
        outside |= at < 0 || at >= extent;                                                         \
        at = clamp(at, 0L, (long)extent - 1) * axis_stride + steps;                                \
        vstore16((TYPE##16)(from[at.s0], from[at.s1], from[at.s2], from[at.s3], from[at.s4],       \
                            from[at.s5], from[at.s6], from[at.s7], from[at.s8], from[at.s9],       \
                            from[at.sa], from[at.sb], from[at.sc], from[at.sd], from[at.se],       \
                            from[at.sf]),                                                          \
                 0, out + i + j);                                                                  \
      }                                                                                            \
      for (; j < run; j++, from += step) {                                                         \
        long at = load_index(indices, i + j, index_type);                                          \
        at = at < 0 ? at + extent : at;                                                            \
        any_outside |= at < 0 || at >= extent;                                                     \
        out[i + j] = from[clamp(at, 0L, (long)extent - 1) * axis_stride];                          \
      }                                                                                            \
    }                                                                                              \
    if (any_outside || any(outside)) *error = 1;                                                   \
  }

GATHER_ELEMENTS(1, uchar)
GATHER_ELEMENTS(2, ushort)
GATHER_ELEMENTS(4, uint)
GATHER_ELEMENTS(8, ulong)
