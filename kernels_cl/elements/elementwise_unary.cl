// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with one operand: out[i] = op(x[i]), both row-major.
//
//   unary_f32        every op below; is_nan writes bool (one byte, 0 or 1)
//   unary_i32, _i64  neg, abs, sign, relu (others copy)
//   unary_bool       not (others copy)
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. NaN gives NaN. No unsafe math options.
#include "lib/activation.clh"
#include "rows/row.clh"

#define OP_NEG 0
#define OP_ABS 1
#define OP_SQRT 2
#define OP_EXP 3
#define OP_LOG 4
#define OP_ERF 5
#define OP_TANH 6
#define OP_SIGMOID 7
#define OP_RELU 8
#define OP_GELU 9
#define OP_GELU_TANH 10
#define OP_RECIPROCAL 11
#define OP_FLOOR 12
#define OP_CEIL 13
#define OP_ROUND 14  // half to even
#define OP_SIGN 15
#define OP_SIN 16
#define OP_COS 17
#define OP_NOT 18
#define OP_IS_NAN 19

float16 apply16(float16 x, int op) {
  switch (op) {
    case OP_NEG: return -x;
    case OP_ABS: return fabs(x);
    case OP_SQRT: return sqrt(x);
    case OP_EXP: return all(fabs(x) < 87.0f) ? exp_v16(x) : exp(x);  // exp_v16 ends at exp(88)
    case OP_LOG: return log(x);
    case OP_ERF: return erf_v16(x);
    case OP_TANH: return tanh_v16(x);
    case OP_SIGMOID: return 1.0f / (1.0f + exp_v16(-x));
    case OP_RELU: return x > 0.0f ? x : (float16)(0.0f);
    case OP_GELU: return activate_v16(x, ACTIVATION_GELU);
    case OP_GELU_TANH: return activate_v16(x, ACTIVATION_GELU_TANH);
    case OP_RECIPROCAL: return 1.0f / x;
    case OP_FLOOR: return floor(x);
    case OP_CEIL: return ceil(x);
    case OP_ROUND: return rint(x);
    case OP_SIGN: return sign(x);
    case OP_SIN: return sin(x);
    case OP_COS: return cos(x);
    default: return x;
  }
}

__kernel void unary_f32(__global const float* x, __global void* out, int op, int count, int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  if (op == OP_IS_NAN) {
    for (int i = first; i < last; i++) ((__global uchar*)out)[i] = isnan(x[i]) ? 1 : 0;
    return;
  }
  for (int i = first; i < last; i += 16) {
    const int n = min(16, last - i);
    const float16 value = load_row16(x, i, n, TYPE_F32, 1.0f, 0);
    store_row16((__global float*)out, i, n, isnan(value) ? value : apply16(value, op));
  }
}

#define UNARY_INTEGER(NAME, TYPE)                                                                  \
  __kernel void unary_##NAME(__global const TYPE* x, __global TYPE* out, int op, int count,        \
                             int chunk) {                                                          \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                  \
    for (int i = first; i < last; i++) {                                                           \
      const TYPE v = x[i];                                                                         \
      out[i] = op == OP_NEG                     ? -v                                               \
               : op == OP_ABS                   ? (v < 0 ? -v : v)                                 \
               : op == OP_SIGN                  ? (v > 0) - (v < 0)                                \
               : op == OP_RELU                  ? (v > 0 ? v : 0)                                  \
                                                : v;                                               \
    }                                                                                              \
  }

UNARY_INTEGER(i32, int)
UNARY_INTEGER(i64, long)

__kernel void unary_bool(__global const uchar* x, __global uchar* out, int op, int count,
                         int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  for (int i = first; i < last; i++) out[i] = op == OP_NOT ? x[i] == 0 : x[i];
}
