// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with two operands and broadcasting: out[i] = a[i] op b[i].
//
//   binary_f32, binary_i32, binary_i64, binary_bool: type of a and b
//   out     row-major, of the same type, or bool (one byte, 0 or 1) for comparisons and logic
//   op      see below; pow, and or xor on bool only where they make sense (others give 0)
//   shape   int: dims[rank], strides of a[rank], strides of b[rank], in elements; 0 repeats
//           (broadcast)
//   count   product of the dims
//
// Grid: (ceil(count / chunk)), any local size; each work-item takes `chunk` elements in turn.
// Bounds: count < 2^31. Integer division truncates; by zero it gives 0. min and max propagate NaN.
// Coalesce dimensions if both operands allow it: long inner runs are fast.
#include "lib/store16.clh"
#include "lib/strided.clh"

#define OP_ADD 0
#define OP_SUB 1
#define OP_MUL 2
#define OP_DIV 3
#define OP_POW 4
#define OP_MIN 5
#define OP_MAX 6
#define OP_MOD 7   // sign of the divisor (ONNX Mod)
#define OP_FMOD 8  // sign of the dividend (ONNX Mod with fmod = 1)
#define OP_EQUAL 16
#define OP_LESS 17
#define OP_GREATER 18
#define OP_LESS_EQUAL 19
#define OP_GREATER_EQUAL 20
#define OP_AND 24
#define OP_OR 25
#define OP_XOR 26

float16 apply_f32x16(float16 a, float16 b, int op) {
  switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MIN: return (a < b) | isnan(a) ? a : b;
    default: return (a > b) | isnan(a) ? a : b;
  }
}

float apply_f32(float a, float b, int op) {
  switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_POW:  // the library call is slow; these exponents are those of LayerNorm and GELU
      if (b == 0.5f) return a == -INFINITY ? INFINITY : sqrt(a);  // as pow(), not NaN
      return b == 2.0f ? a * a : b == 3.0f ? a * a * a : pow(a, b);
    case OP_MIN: return a < b || isnan(a) ? a : b;
    case OP_MAX: return a > b || isnan(a) ? a : b;
    case OP_MOD: return a - floor(a / b) * b;
    case OP_FMOD: return fmod(a, b);
    default: return 0.0f;
  }
}

long apply_integer(long a, long b, int op) {
  switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return b == 0 ? 0 : b == -1 ? -a : a / b;
    case OP_POW: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? 1 - 2 * (b & 1) : 0;
      long power = 1;
      for (; b > 0; b >>= 1, a *= a)
        if (b & 1) power *= a;
      return power;
    }
    case OP_MIN: return min(a, b);
    case OP_MAX: return max(a, b);
    case OP_MOD: {
      const long rest = b == 0 || b == -1 ? 0 : a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case OP_FMOD: return b == 0 || b == -1 ? 0 : a % b;
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_XOR: return a ^ b;
    default: return 0;
  }
}

#define COMPARE(a, b, op)                          \
  ((op) == OP_EQUAL           ? (a) == (b)         \
   : (op) == OP_LESS          ? (a) < (b)          \
   : (op) == OP_GREATER       ? (a) > (b)          \
   : (op) == OP_LESS_EQUAL    ? (a) <= (b)         \
                              : (a) >= (b))

__kernel void binary_f32(__global const float* a, __global const float* b, __global void* out,
                         int op, __global const int* shape, int rank, int count, int chunk) {
  const int first = get_global_id(0) * chunk, last = min(first + chunk, count);
  const int a_stride = inner_stride(rank, shape + rank);
  const int b_stride = inner_stride(rank, shape + 2 * rank);
  const int wide = op <= OP_DIV || op == OP_MIN || op == OP_MAX;
  for (int i = first; i < last;) {
    const int run = run_from(i, last, rank, shape);
    __global const float* x = a + place_of(i, rank, shape, shape + rank);
    __global const float* y = b + place_of(i, rank, shape, shape + 2 * rank);
    int j = 0;
    if (op >= OP_EQUAL) {
      __global uchar* to = (__global uchar*)out + i;
      for (; j < run; j++) to[j] = COMPARE(x[(long)j * a_stride], y[(long)j * b_stride], op);
    } else {
      __global float* to = (__global float*)out + i;
      if (wide && (a_stride | 1) == 1 && (b_stride | 1) == 1)
        for (; j + 16 <= run; j += 16) {
          const float16 u = a_stride ? vload16(0, x + j) : (float16)(x[0]);
          const float16 v = b_stride ? vload16(0, y + j) : (float16)(y[0]);
          STORE16(Float16Any, apply_f32x16(u, v, op), to + j);
        }
      for (; j < run; j++) to[j] = apply_f32(x[(long)j * a_stride], y[(long)j * b_stride], op);
    }
    i += run;
  }
}

#define BINARY_INTEGER(NAME, TYPE)                                                                 \
  __kernel void binary_##NAME(__global const TYPE* a, __global const TYPE* b, __global void* out,  \
                              int op, __global const int* shape, int rank, int count, int chunk) { \
    const int first = get_global_id(0) * chunk, last = min(first + chunk, count);                  \
    const long a_stride = inner_stride(rank, shape + rank);                                        \
    const long b_stride = inner_stride(rank, shape + 2 * rank);                                    \
    for (int i = first; i < last;) {                                                               \
      const int run = run_from(i, last, rank, shape);                                              \
      __global const TYPE* x = a + place_of(i, rank, shape, shape + rank);                         \
      __global const TYPE* y = b + place_of(i, rank, shape, shape + 2 * rank);                     \
      if (op >= OP_EQUAL && op < OP_AND) {                                                         \
        __global uchar* to = (__global uchar*)out + i;                                             \
        for (int j = 0; j < run; j++) to[j] = COMPARE(x[j * a_stride], y[j * b_stride], op);       \
      } else {                                                                                     \
        __global TYPE* to = (__global TYPE*)out + i;                                               \
        for (int j = 0; j < run; j++)                                                              \
          to[j] = (TYPE)apply_integer(x[j * a_stride], y[j * b_stride], op);                       \
      }                                                                                            \
      i += run;                                                                                    \
    }                                                                                              \
  }

BINARY_INTEGER(i32, int)
BINARY_INTEGER(i64, long)
BINARY_INTEGER(bool, uchar)
