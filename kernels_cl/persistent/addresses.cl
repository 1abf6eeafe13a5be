// SPDX-License-Identifier: Apache-2.0
// Where a CPU device keeps eight buffers, for kernels that are given the addresses of buffers as
// numbers (persistent.cl): addresses[first + i] = i-th buffer, 0 for a null pointer.
//
// Grid: (1), work-group (1,1,1). Bounds: addresses has first + 8 elements.
__kernel void addresses(__global void* a, __global void* b, __global void* c, __global void* d,
                        __global void* e, __global void* f, __global void* g, __global void* h,
                        __global ulong* addresses, int first) {
  addresses += first;
  addresses[0] = (ulong)a;
  addresses[1] = (ulong)b;
  addresses[2] = (ulong)c;
  addresses[3] = (ulong)d;
  addresses[4] = (ulong)e;
  addresses[5] = (ulong)f;
  addresses[6] = (ulong)g;
  addresses[7] = (ulong)h;
}
