// SPDX-License-Identifier: Apache-2.0
// Shows arithmetic in half: out[i] = a[i] * 0.5 + 1 for small integers, which half holds exactly.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

__kernel void probe_fp16(__global const int* a, __global int* out) {
  const int i = get_global_id(0);
  const half x = (half)a[i];
  const half y = x * (half)0.5f + (half)1.0f;
  out[i] = (int)((float)y * 2.0f);
}
