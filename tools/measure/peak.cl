// SPDX-License-Identifier: Apache-2.0
// Peaks of a machine: loops of independent multiply-add instructions on registers, nothing else.
//
// Each work-item runs 12 chains, enough to hide the latency of the instruction, `steps` times.
// The results are stored, so that nothing can be left out. peak_read is that of loads.

#define CHAINS 12

// Vectors of one register: of two, the chains would not fit in the 16 registers of AVX2.
#ifdef __AVX512F__
#define LANES 16
typedef float16 floatv;
#else
#define LANES 8
typedef float8 floatv;
#endif

#ifndef WITH_AVX2
#define WITH_AVX2 0  // 1: the machine has AVX2
#endif
#ifndef WITH_VNNI
#define WITH_VNNI 0  // 1: the machine has AVX-512 VNNI
#endif
#ifndef WITH_BF16
#define WITH_BF16 0  // 1: the machine has AVX-512 BF16
#endif

// A kernel of chains of the type T: count times it does STEP, which may name steps, to each chain.
#define PEAK(name, T, count, STEP)                                      \
  __kernel void name(__global T* out, const int steps) {                \
    T c[CHAINS];                                                        \
    _Pragma("unroll") for (int i = 0; i < CHAINS; i++) c[i] = (T)(i);   \
    for (int s = 0; s < (count); s++) {                                 \
      _Pragma("unroll") for (int i = 0; i < CHAINS; i++) STEP(c[i]);    \
    }                                                                   \
    T sum = c[0];                                                       \
    _Pragma("unroll") for (int i = 1; i < CHAINS; i++) sum += c[i];     \
    out[get_global_id(0)] = sum;                                        \
  }

// 2 * 16 * CHAINS operations a step, of as many instructions as that takes.
#define FMA(c) (c) = fma(c, (floatv)(1.0f / (steps + 1)), (floatv)(steps))
PEAK(peak_f32, floatv, steps * (16 / LANES), FMA)

// Work-item i adds up the i-th `count` times 16 floats, in 8 registers: its loads are all it does.
// count is a multiple of 16.
__kernel void peak_read(__global floatv* out, __global const floatv* data, const int count) {
  const int vectors = count * (16 / LANES);
  __global const floatv* x = data + (size_t)get_global_id(0) * vectors;
  floatv c[8];
#pragma unroll
  for (int i = 0; i < 8; i++) c[i] = 0.0f;
  for (int s = 0; s < vectors; s += 8) {
#pragma unroll
    for (int i = 0; i < 8; i++) c[i] += x[s + i];
  }
#pragma unroll
  for (int i = 1; i < 8; i++) c[0] += c[i];
  out[get_global_id(0)] = c[0];
}

#if WITH_AVX2
// pmaddubsw, pmaddwd by ones and an addition: 2 * 32 * CHAINS operations a step.
static int8 pmaddubsw(int8 a) {
  const int8 ones = (int8)(0x00010001);
  int8 products;
  __asm__ volatile("vpmaddubsw %1, %1, %0" : "=x"(products) : "x"(a));
  __asm__ volatile("vpmaddwd %1, %0, %0" : "+x"(products) : "x"(ones));
  return products;
}
#define ADD_PMADDUBSW(c) (c) += pmaddubsw((int8)(steps))
PEAK(peak_pmaddubsw, int8, steps, ADD_PMADDUBSW)
#endif

#if WITH_VNNI
// 2 * 64 * CHAINS operations a step.
#define VPDPBUSD(c) __asm__("vpdpbusd %1, %1, %0" : "+v"(c) : "v"((int16)(steps)))
PEAK(peak_vpdpbusd, int16, steps, VPDPBUSD)
#endif

#if WITH_BF16
// 2 * 32 * CHAINS operations a step, of ones.
#define VDPBF16PS(c) __asm__("vdpbf16ps %1, %1, %0" : "+v"(c) : "v"((int16)(0x3f803f80)))
PEAK(peak_vdpbf16ps, float16, steps, VDPBF16PS)
#endif
