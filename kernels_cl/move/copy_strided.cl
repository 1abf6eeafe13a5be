// SPDX-License-Identifier: Apache-2.0
// Copies a strided view to a strided view: Transpose, Slice, Expand, Concat, Split, Pad.
//
//   target[target_start + sum index[d] * target_stride[d]] =
//       source[source_start + sum index[d] * source_stride[d]]
//
//   shape   int: dims[rank], source strides[rank], target strides[rank], in elements; a source
//           stride may be 0 (Expand) or negative (Slice backwards). rank 0 copies one element.
//   count   product of the dims. copy_strided_1, _2, _4, _8: bytes of an element.
//   fill_strided_1, ...: the same target, written with the one element `value[0]`.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. Coalesce dimensions that are contiguous in both views: long inner runs are
// fast.
#include "persistent/place.clh"
#include "lib/store16.clh"
#include "lib/strided.clh"

#define COPY_STRIDED(SIZE, TYPE, ANY)                                                              \
  KERNEL copy_strided_##SIZE(__global const TYPE* source, __global TYPE* target,                   \
                             int source_start, int target_start, __global const int* shape,        \
                             int rank, int count, int chunk PLACE_PARAMETER) {                     \
    const int first = PLACE.id.x * chunk, last = min(first + chunk, count);                        \
    const int from_stride = inner_stride(rank, shape + rank);                                      \
    const int to_stride = inner_stride(rank, shape + 2 * rank);                                    \
    for (int i = first; i < last;) {                                                               \
      const int run = run_from(i, last, rank, shape);                                              \
      __global const TYPE* from = source + source_start + place_of(i, rank, shape, shape + rank);  \
      __global TYPE* to = target + target_start + place_of(i, rank, shape, shape + 2 * rank);      \
      int j = 0;                                                                                   \
      if (from_stride == 1 && to_stride == 1)                                                      \
        for (; j + 16 <= run; j += 16) STORE16(ANY, vload16(0, from + j), to + j);                 \
      for (; j < run; j++) to[(long)j * to_stride] = from[(long)j * from_stride];                  \
      i += run;                                                                                    \
    }                                                                                              \
  }                                                                                                \
  KERNEL fill_strided_##SIZE(__global const TYPE* value, __global TYPE* target,                    \
                             int target_start, __global const int* shape, int rank,                \
                             int count, int chunk PLACE_PARAMETER) {                               \
    const int first = PLACE.id.x * chunk, last = min(first + chunk, count);                        \
    const int to_stride = inner_stride(rank, shape + 2 * rank);                                    \
    for (int i = first; i < last;) {                                                               \
      const int run = run_from(i, last, rank, shape);                                              \
      __global TYPE* to = target + target_start + place_of(i, rank, shape, shape + 2 * rank);      \
      for (int j = 0; j < run; j++) to[(long)j * to_stride] = value[0];                            \
      i += run;                                                                                    \
    }                                                                                              \
  }

COPY_STRIDED(1, uchar, Uchar16Any)
COPY_STRIDED(2, ushort, Ushort16Any)
COPY_STRIDED(4, uint, Uint16Any)
COPY_STRIDED(8, ulong, Ulong16Any)

#define COPY_ARGUMENTS                                                                             \
  (POINTER(0), POINTER(1), INTEGER(2), INTEGER(3), POINTER(4), INTEGER(5), INTEGER(6), INTEGER(7), \
   STEP_PLACE)
ALWAYS_MERGED(copy_strided_1, COPY_ARGUMENTS)
ALWAYS_MERGED(copy_strided_2, COPY_ARGUMENTS)
ALWAYS_MERGED(copy_strided_4, COPY_ARGUMENTS)
ALWAYS_MERGED(copy_strided_8, COPY_ARGUMENTS)
