// SPDX-License-Identifier: Apache-2.0
// Where of ONNX with broadcasting: out[i] = condition[i] ? a[i] : b[i].
//
//   where_1, where_2, where_4, where_8: bytes of an element of a, b and out. condition: one byte.
//   shape   int: dims[rank], strides of condition[rank], of a[rank], of b[rank]; 0 repeats
//           (broadcast)
//   out     row-major; count = product of the dims
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31.
#include "lib/strided.clh"

#define WHERE(SIZE, TYPE)                                                                          \
  __kernel void where_##SIZE(__global const uchar* condition, __global const TYPE* a,              \
                             __global const TYPE* b, __global TYPE* out,                           \
                             __global const int* shape, int rank, int count, int chunk) {          \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                  \
    const long c_stride = inner_stride(rank, shape + rank);                                        \
    const long a_stride = inner_stride(rank, shape + 2 * rank);                                    \
    const long b_stride = inner_stride(rank, shape + 3 * rank);                                    \
    for (int i = first; i < last;) {                                                               \
      const int run = run_from(i, last, rank, shape);                                              \
      __global const uchar* c = condition + place_of(i, rank, shape, shape + rank);                \
      __global const TYPE* x = a + place_of(i, rank, shape, shape + 2 * rank);                     \
      __global const TYPE* y = b + place_of(i, rank, shape, shape + 3 * rank);                     \
      for (int j = 0; j < run; j++)                                                                \
        out[i + j] = c[j * c_stride] ? x[j * a_stride] : y[j * b_stride];                          \
      i += run;                                                                                    \
    }                                                                                              \
  }

WHERE(1, uchar)
WHERE(2, ushort)
WHERE(4, uint)
WHERE(8, ulong)
