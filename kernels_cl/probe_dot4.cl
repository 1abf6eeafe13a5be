// SPDX-License-Identifier: Apache-2.0
// Shows whether a packed 4x8-bit dot product is exact: one work-item per lane, three sign mixes.
//
//   lane i: four bytes of a, four bytes of b, start[i]  ->  out[0][i] s8.s8, out[1][i] u8.s8,
//   out[2][i] u8.u8, each start[i] + sum of the four products, wrapping
//
// PROBE_DOT: 1 = cl_khr_integer_dot_product, 2 = NVIDIA PTX, 3 = AMD builtin, 4 = Arm. AMD and Arm
// have only s8.s8 everywhere: the host reads that row alone.

#ifndef PROBE_DOT
#define PROBE_DOT 1
#endif

#if PROBE_DOT == 4
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable
#endif

#define LANES 16

__kernel void probe_dot4(__global const uint* a, __global const uint* b, __global const int* start,
                         __global int* out) {
  const int i = get_global_id(0);
#if PROBE_DOT == 1
  out[i] = start[i] + dot_4x8packed_ss_int(a[i], b[i]);
  out[LANES + i] = start[i] + dot_4x8packed_us_int(a[i], b[i]);
  out[2 * LANES + i] = (int)((uint)start[i] + dot_4x8packed_uu_uint(a[i], b[i]));
#elif PROBE_DOT == 2
  int ss, us, uu;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(ss) : "r"(a[i]), "r"(b[i]), "r"(start[i]));
  __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(us) : "r"(a[i]), "r"(b[i]), "r"(start[i]));
  __asm__("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(uu) : "r"(a[i]), "r"(b[i]), "r"(start[i]));
  out[i] = ss;
  out[LANES + i] = us;
  out[2 * LANES + i] = uu;
#elif PROBE_DOT == 3
  out[i] = __builtin_amdgcn_sdot4((int)a[i], (int)b[i], start[i], false);
#elif PROBE_DOT == 4
  out[i] = arm_dot_acc(as_char4(a[i]), as_char4(b[i]), start[i]);
#endif
}
