// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear of ONNX, per tensor or per axis.
//
//   quantize:    y = saturate(round(x / scale) + zero_point), half to even
//   dequantize:  y = (x - zero_point) * scale
//
//   The tensor is seen as [outer][axis][inner]; scales[axis] f32, zero_points[axis] of the
//   quantized type or null for 0. Per tensor: axis = 1, inner = count.
//   Types of the quantized side: u8, s8; dequantize takes s32 as well, without zero point.
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. The quotient is that of the device's division (correctly rounded on CPUs).
// No unsafe math options.
#include "persistent/place.clh"
#include "rows/row.clh"

static int load_zero_point(__global const uchar* zero_points, int i, int type) {
  if (!zero_points) return 0;
  return type == TYPE_U8 ? (int)zero_points[i] : (int)as_char(zero_points[i]);
}

// Scales i .. i + n - 1, 1 in the lanes from n on.
static float16 load_scales(__global const float* scales, int i, int n) {
  const float16 scale = load_row16(scales, i, n, TYPE_F32, 1.0f, 0);
  return LANE < n ? scale : (float16)(1.0f);
}

static float16 load_zero_points(__global const uchar* zero_points, int i, int n, int type) {
  return zero_points ? load_row16(zero_points, i, n, type, 1.0f, 0) : (float16)(0.0f);
}

KERNEL quantize(__global const float* x, __global uchar* y, int y_type,
                __global const float* scales, __global const uchar* zero_points, int count,
                int axis, int inner, int chunk PLACE_PARAMETER) {
  int i = PLACE.id.x * chunk;
  const int last = min(i + chunk, count);
  while (i < last) {  // a run of elements with the same scale, or of different ones along the axis
    const int a = i / inner % axis;
    if (inner == 1) {
      const int stop = min(last, i + axis - a);
      for (int c = a; i < stop; i += 16, c += 16) {
        const int n = min(16, stop - i);
        store_quantized16(y, i, n,
                          load_row16(x, i, n, TYPE_F32, 1.0f, 0) / load_scales(scales, c, n),
                          y_type, load_zero_points(zero_points, c, n, y_type));
      }
      i = stop;
      continue;
    }
    const int stop = min(last, (i / inner + 1) * inner);
    const float scale = scales[a];
    const float zero_point = load_zero_point(zero_points, a, y_type);
    for (; i < stop; i += 16) {
      const int n = min(16, stop - i);
      store_quantized16(y, i, n, load_row16(x, i, n, TYPE_F32, 1.0f, 0) / scale, y_type,
                        zero_point);
    }
    i = stop;
  }
}

KERNEL dequantize(__global const uchar* x, int x_type, __global float* y,
                  __global const float* scales, __global const uchar* zero_points, int count,
                  int axis, int inner, int chunk PLACE_PARAMETER) {
  int i = PLACE.id.x * chunk;
  const int last = min(i + chunk, count);
  while (i < last) {
    const int a = i / inner % axis;
    const int stop = inner == 1 ? min(last, i + axis - a) : min(last, (i / inner + 1) * inner);
    if (x_type == TYPE_S32) {
      for (int c = a; i < stop; i++, c += inner == 1)
        y[i] = ((__global const int*)x)[i] * scales[c];
    } else if (inner == 1) {
      for (int c = a; i < stop; i += 16, c += 16) {
        const int n = min(16, stop - i);
        store_row16(y, i, n,
                    (load_row16(x, i, n, x_type, 1.0f, 0) -
                     load_zero_points(zero_points, c, n, x_type)) * load_scales(scales, c, n));
      }
    } else {
      const float scale = scales[a];
      const int zero_point = load_zero_point(zero_points, a, x_type);
      for (; i < stop; i += 16) {
        const int n = min(16, stop - i);
        store_row16(y, i, n, load_row16(x, i, n, x_type, scale, zero_point));
      }
    }
    i = stop;
  }
}

ALWAYS_MERGED(quantize, (POINTER(0), POINTER(1), INTEGER(2), POINTER(3), POINTER(4), INTEGER(5),
                         INTEGER(6), INTEGER(7), INTEGER(8), STEP_PLACE))

ALWAYS_MERGED(dequantize, (POINTER(0), INTEGER(1), POINTER(2), POINTER(3), POINTER(4), INTEGER(5),
                           INTEGER(6), INTEGER(7), INTEGER(8), STEP_PLACE))
