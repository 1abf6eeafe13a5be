// SPDX-License-Identifier: Apache-2.0
// GatherND of ONNX: each index tuple names a block of `data`.
//
//   data [batches][extents[0]]..[extents[depth-1]][inner],  out [batches][tuples][inner]
//   indices [batches][tuples][depth], s32 or s64 by index_type (types.clh); -1 is the last
//   extents  int[depth]
//   error    one int, set to 1 if an index was outside; the nearest place is used then, of an empty
//            axis none
//   gather_nd_1, _2, _4, _8: bytes of an element.
//
// Grid: (ceil(batches * tuples / rows_per_item)), any local size. Bounds: batches * tuples < 2^31.
#include "lib/types.clh"

#define GATHER_ND(SIZE, TYPE)                                                                      \
  __kernel void gather_nd_##SIZE(__global const TYPE* data, __global const void* indices,          \
                                 int index_type, __global TYPE* out, int batches, int tuples,      \
                                 int depth, __global const int* extents, int inner,                \
                                 __global int* error, int rows_per_item) {                         \
    const int first = get_global_id(0) * rows_per_item;                                            \
    const int last = min(first + rows_per_item, batches * tuples);                                 \
    for (int d = 0; d < depth && first < last; d++)                                                \
      if (extents[d] < 1) {                                                                        \
        *error = 1;                                                                                \
        return;                                                                                    \
      }                                                                                            \
    for (int row = first; row < last; row++) {                                                     \
      long place = row / tuples;                                                                   \
      for (int d = 0; d < depth; d++) {                                                            \
        const size_t at = (size_t)row * depth + d;                                                 \
        long index = index_type == TYPE_S64 ? ((__global const long*)indices)[at]                  \
                                            : ((__global const int*)indices)[at];                  \
        if (index < 0) index += extents[d];                                                        \
        if (index < 0 || index >= extents[d]) *error = 1;                                          \
        place = place * extents[d] + clamp(index, 0L, (long)extents[d] - 1);                       \
      }                                                                                            \
      for (int i = 0; i < inner; i++) out[(size_t)row * inner + i] = data[place * inner + i];      \
    }                                                                                              \
  }

GATHER_ND(1, uchar)
GATHER_ND(2, ushort)
GATHER_ND(4, uint)
GATHER_ND(8, ulong)
