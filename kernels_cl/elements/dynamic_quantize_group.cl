// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear for GPUs: the work-groups of both kernels reduce in local memory.
//
//   dynamic_range     x | group 0 | group 1 | ... | group PARTS - 1 | group 0 | ...  of 4 * ITEMS
//                     elements; neighbours load neighbours
//   dynamic_quantize  each group combines the ranges, each item one of each kind; its part of x has
//                     ITEMS * chunk elements
//
// Same arguments and semantics as dynamic_quantize.cl: lowest and highest do not depend on order.
// Grids: (ITEMS * PARTS), (ITEMS * ceil(count / (ITEMS * chunk))), work-groups (ITEMS, 1, 1).
// Bounds: 0 < count < 2^31, chunk is a multiple of 4; every buffer begins at a multiple of 16
// bytes.
#define ITEMS 256
#include "rows/row_group.clh"

#ifndef PARTS
#define PARTS 256  // work-groups that find the range, at most ITEMS
#endif

// Elements i .. i + 3; 0 past the end.
static float4 load_or_zeros(__global const float* x, uint i, uint count) {
  return i + 4 <= count ? ((__global const float4*)x)[i / 4]
                        : load_floats4(x, i, count - i, false);
}

GROUP_KERNEL void dynamic_range(__global const float* x, __global float* ranges, int count) {
  __local float lows[SHARED_WORDS], highs[SHARED_WORDS];
  const int part = get_group_id(0), item = get_local_id(0);
  float4 low = 0.0f, high = 0.0f;  // comparisons leave NaN out
#pragma unroll 4
  for (uint i = 4 * (part * ITEMS + item); i < (uint)count; i += 4 * PARTS * ITEMS) {
    const float4 v = load_or_zeros(x, i, count);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  const float lowest = -group_max(max4(-low), lows), highest = group_max(max4(high), highs);
  if (item > 0) return;
  ranges[part] = lowest;
  ranges[PARTS + part] = highest;
}

GROUP_KERNEL void dynamic_quantize(__global const float* x, __global const float* ranges,
                                   __global uchar* y, __global float* scale_out,
                                   __global uchar* zero_point_out, int count, int chunk) {
  __local float lows[SHARED_WORDS], highs[SHARED_WORDS];
  const int item = get_local_id(0), part = min(item, PARTS - 1);
  const float low = -group_max(-ranges[part], lows);
  const float high = group_max(ranges[PARTS + part], highs);
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const int zero_point = (int)clamp(rint(0.0f - low / scale), 0.0f, 255.0f);
  if (get_global_id(0) == 0) {
    *scale_out = scale;
    *zero_point_out = (uchar)zero_point;
  }
  const uint of_group = ITEMS * chunk, first = get_group_id(0) * of_group;
  const uint last = min(first + of_group, (uint)count);
  for (uint i = first + 4 * item; i < last; i += 4 * ITEMS) {
    const float4 v = load_or_zeros(x, i, count);
    store_quantized4(y, i, count - i, v / scale, TYPE_U8, (float4)(zero_point),
                     i + 4 <= (uint)count);
  }
}
