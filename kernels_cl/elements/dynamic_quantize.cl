// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear of ONNX: quantizes a tensor to u8 by its own range, widened to include 0.
//
//   scale      = (high - low) / 255, 1 where that is 0
//   zero_point = round(0 - low / scale), half to even
//   y          = saturate(round(x / scale) + zero_point)
//
//   dynamic_range      x f32 [count] -> ranges f32 [2][PARTS]: lowest and highest of a part and 0
//   dynamic_quantize   x, ranges -> y u8 [count], scale f32 [1], zero_point u8 [1]
//
// Grids: (PARTS), and (ceil(count / chunk)); any local size. Every item of the second combines the
// ranges itself, item 0 writes scale and zero point: they stay on the device.
// Bounds: 0 < count < 2^31. Division as in quantize.cl. No unsafe math options.
#include "rows/row.clh"

#ifndef PARTS
#define PARTS 256  // a multiple of 16, as shared_numbers.hpp has it
#endif

__kernel void dynamic_range(__global const float* x, __global float* ranges, int count) {
  const int part = get_global_id(0);
  if (part >= PARTS) return;
  const int size = (count / PARTS + 16) & ~15;  // PARTS of them cover the tensor
  const int first = min((long)part * size, (long)count),
            last = min((long)first + size, (long)count);
  float16 low = 0.0f, high = 0.0f;  // what lies past the end is read as 0
  for (int i = first; i < last; i += 16) {
    const float16 v = load_row16(x, i, min(16, last - i), TYPE_F32, 1.0f, 0);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  float lanes[32];
  vstore16(low, 0, lanes);
  vstore16(high, 1, lanes);
  for (int t = 1; t < 16; t++) {
    lanes[0] = fmin(lanes[0], lanes[t]);
    lanes[16] = fmax(lanes[16], lanes[16 + t]);
  }
  ranges[part] = lanes[0];
  ranges[PARTS + part] = lanes[16];
}

__kernel void dynamic_quantize(__global const float* x, __global const float* ranges,
                               __global uchar* y, __global float* scale_out,
                               __global uchar* zero_point_out, int count, int chunk) {
  float16 lows = 0.0f, highs = 0.0f;
  for (int i = 0; i < PARTS; i += 16) {
    lows = fmin(lows, vload16(0, ranges + i));
    highs = fmax(highs, vload16(0, ranges + PARTS + i));
  }
  float low = 0.0f, high = 0.0f;
  for (int t = 0; t < 16; t++) {
    low = fmin(low, ((const float*)&lows)[t]);
    high = fmax(high, ((const float*)&highs)[t]);
  }
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const int zero_point = (int)clamp(rint(0.0f - low / scale), 0.0f, 255.0f);
  if (get_global_id(0) == 0) {
    *scale_out = scale;
    *zero_point_out = (uchar)zero_point;
  }
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  for (int i = first; i < last; i += 16) {
    const int n = min(16, last - i);
    store_quantized16(y, i, n, load_row16(x, i, n, TYPE_F32, 1.0f, 0) / scale, TYPE_U8, zero_point);
  }
}
