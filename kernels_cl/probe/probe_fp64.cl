// SPDX-License-Identifier: Apache-2.0
// Shows arithmetic in double: 2^40 + a[i] - 2^40 keeps a[i] in double and loses it in float.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void probe_fp64(__global const int* a, __global int* out) {
  const int i = get_global_id(0);
  const double big = 1099511627776.0 + (double)a[i] * 0.5;
  out[i] = (int)((big - 1099511627776.0) * 2.0);
}
