// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear of ONNX, per tensor or per axis.
//
//   quantize:    y = saturate(round(x / scale) + zero_point), half to even
//   dequantize:  y = (x - zero_point) * scale
//
//   The tensor is seen as [outer][axis][inner]; scales[axis] f32, zero_points[axis] of the quantized
//   type or null for 0. Per tensor: axis = 1, inner = count.
//   Types of the quantized side: u8, s8; dequantize takes s32 as well, without zero point.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. The quotient is that of the device's division (correctly rounded on CPUs).
// No unsafe math options.
#include "row.clh"

int load_zero_point(__global const uchar* zero_points, int i, int type) {
  if (!zero_points) return 0;
  return type == TYPE_U8 ? (int)zero_points[i] : (int)as_char(zero_points[i]);
}

__kernel void quantize(__global const float* x, __global uchar* y, int y_type,
                       __global const float* scales, __global const uchar* zero_points, int count,
                       int axis, int inner, int chunk) {
  int i = get_global_id(0) * chunk;
  const int last = min(i + chunk, count);
  while (i < last) {  // a run of elements with the same scale, or of different ones along the axis
    const int a = i / inner % axis;
    if (inner == 1) {
      const int n = min(16, min(axis - a, last - i));
      int16 zero_point = 0;
      if (zero_points)
        for (int t = 0; t < n; t++) ((int*)&zero_point)[t] = load_zero_point(zero_points, a + t, y_type);
      float16 scale = load_row16(scales, a, n, TYPE_F32, 1.0f, 0);
      if (n < 16) scale = LANE < n ? scale : (float16)(1.0f);
      const float low = y_type == TYPE_U8 ? 0.0f : -128.0f;
      // Rounding comes before the zero point, as the operator says.
      const float16 rounded = rint(load_row16(x, i, n, TYPE_F32, 1.0f, 0) / scale);
      store_quantized16(y, i, n, clamp(rounded + convert_float16(zero_point), low, low + 255.0f),
                        y_type, 0);
      i += n;
      continue;
    }
    const int stop = min(last, (i / inner + 1) * inner);
    const float scale = scales[a];
    const int zero_point = load_zero_point(zero_points, a, y_type);
    for (; i < stop; i += 16) {
      const int n = min(16, stop - i);
      store_quantized16(y, i, n, load_row16(x, i, n, TYPE_F32, 1.0f, 0) / scale, y_type, zero_point);
    }
    i = stop;
  }
}

__kernel void dequantize(__global const uchar* x, int x_type, __global float* y,
                         __global const float* scales, __global const uchar* zero_points, int count,
                         int axis, int inner, int chunk) {
  int i = get_global_id(0) * chunk;
  const int last = min(i + chunk, count);
  while (i < last) {
    const int a = i / inner % axis;
    const int stop = inner == 1 ? i + 1 : min(last, (i / inner + 1) * inner);
    const float scale = scales[a];
    if (x_type == TYPE_S32) {
      for (; i < stop; i++) y[i] = ((__global const int*)x)[i] * scale;
      continue;
    }
    const int zero_point = load_zero_point(zero_points, a, x_type);
    for (; i < stop; i += 16) {
      const int n = min(16, stop - i);
      store_row16(y, i, n, load_row16(x, i, n, x_type, scale, zero_point));
    }
    i = stop;
  }
}
