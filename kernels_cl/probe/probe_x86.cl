// SPDX-License-Identifier: Apache-2.0
// Tests which x86 instructions kernels can use: one section each, enabled by the host, which checks
// CPUID first (an unsupported instruction would crash the process).
//
//   a[64] (u8)  .  b[64] (s8)  ->  out[section][16] (s32)
//
// pmaddwd sections: out[i] = a[2i] b[2i] + a[2i+1] b[2i+1]. The others, with four bytes a lane:
// out[i] = start[i] + a[4i] b[4i] + ... + a[4i+3] b[4i+3], wrapping.
//
// PROBE_AVX2 ... PROBE_AVX512_BF16: 1 = run this section. A section whose vector registers the
// compiler does not use writes nothing, and so fails.

typedef short vec16s __attribute__((vector_size(32)));
typedef short vec32s __attribute__((vector_size(64)));

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void probe_x86(__global const uchar* a, __global const char* b, __global const int* start,
                        __global int* out) {
#if PROBE_AVX2 && defined(__AVX2__)
  for (int half_index = 0; half_index < 2; half_index++) {
    const short16 wide_a = convert_short16(vload16(half_index, a));
    const short16 wide_b = convert_short16(vload16(half_index, b));
    const int8 sums = __builtin_astype(
        __builtin_ia32_pmaddwd256(__builtin_astype(wide_a, vec16s),
                                  __builtin_astype(wide_b, vec16s)),
        int8);
    vstore8(sums, half_index, out);
  }
#endif
#if PROBE_AVX512 && defined(__AVX512BW__)
  {
    vec32s wide_a, wide_b;
    for (int i = 0; i < 32; i++) {
      wide_a[i] = a[i];
      wide_b[i] = b[i];
    }
    vstore16(__builtin_astype(__builtin_ia32_pmaddwd512(wide_a, wide_b), int16), 1, out);
  }
#endif
#if PROBE_AVX512_VNNI && defined(__AVX512F__)
  {
    int16 sums = vload16(0, start);
    const int16 bytes_a = as_int16(*(__global const int16*)a);
    const int16 bytes_b = as_int16(*(__global const int16*)b);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes_a), "v"(bytes_b));
    vstore16(sums, 2, out);
  }
#endif
#if PROBE_AVX_VNNI && defined(__AVX2__)
  for (int half_index = 0; half_index < 2; half_index++) {
    int8 sums = vload8(half_index, start);
    const int8 bytes_a = ((__global const int8*)a)[half_index];
    const int8 bytes_b = ((__global const int8*)b)[half_index];
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(bytes_a), "x"(bytes_b));
    vstore8(sums, 6 + half_index, out);
  }
#endif
#if PROBE_AVX512_BF16 && defined(__AVX512F__)
  {
    // bf16 is the upper half of a float; bytes are small integers, exact in bf16. Pairs as pmaddwd.
    float16 sums = 0.0f;
    const uint16 even_a = as_uint16(convert_float16(vload16(0, a))) >> 16;
    const uint16 odd_a = as_uint16(convert_float16(vload16(1, a))) & 0xffff0000u;
    const uint16 even_b = as_uint16(convert_float16(vload16(0, b))) >> 16;
    const uint16 odd_b = as_uint16(convert_float16(vload16(1, b))) & 0xffff0000u;
    const uint16 pairs_a = even_a | odd_a;
    const uint16 pairs_b = even_b | odd_b;
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(pairs_a), "v"(pairs_b));
    vstore16(convert_int16(sums), 4, out);
  }
#endif
}
