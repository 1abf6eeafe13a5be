// SPDX-License-Identifier: Apache-2.0
// Shows sub-groups: out[i] = sum over the sub-group of work-item i of one work-group of 64
// work-items, out[64 + i] = the sub-group's number, from which the host computes the same sums.
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void probe_subgroups(__global const int* a, __global int* out) {
  const int i = get_local_id(0);
  out[i] = sub_group_reduce_add(a[i]);
  out[64 + i] = (int)get_sub_group_id();
}
