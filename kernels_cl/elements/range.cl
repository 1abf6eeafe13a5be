// SPDX-License-Identifier: Apache-2.0
// Range of ONNX: out[i] = start[0] + i * delta[0].
//
//   range_i32, range_i64; start and delta are buffers of one element, out has count
//   elements (the host knows the count when it sizes the buffer).
//
// Grid: (ceil(count / chunk)), any local size. Bounds: count < 2^31.

#define RANGE(NAME, TYPE)                                                                         \
  __kernel void range_##NAME(__global const TYPE* start, __global const TYPE* delta,              \
                             __global TYPE* out, int count, int chunk) {                          \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                 \
    for (int i = first; i < last; i++) out[i] = start[0] + i * delta[0];                          \
  }

RANGE(i32, int)
RANGE(i64, long)
