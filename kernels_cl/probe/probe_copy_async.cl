// SPDX-License-Identifier: Apache-2.0
// Shows copies of copy_async.clh: out[4 i ..] = a[4 (31 - i) ..], 16 bytes of each of 32 work-items
// in two groups, of which every third is zeros.
#ifndef COPY_ASYNC
#define COPY_ASYNC 1
#endif
#include "units/copy_async.clh"

__attribute__((reqd_work_group_size(32, 1, 1))) __kernel void probe_copy_async(
    __global const int* a, __global int* out) {
  __local int copied[32 * 4] __attribute__((aligned(16)));
  const int item = get_local_id(0);
  if (item % 2) copy16_async(copied + item * 4, a + item * 4, item % 3 != 0);
  COPY_COMMIT();
  if (item % 2 == 0) copy16_async(copied + item * 4, a + item * 4, item % 3 != 0);
  COPY_COMMIT();
  COPY_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  vstore4(vload4(31 - item, copied), item, out);
}
