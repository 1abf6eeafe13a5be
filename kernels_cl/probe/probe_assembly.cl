// SPDX-License-Identifier: Apache-2.0
// A program with inline assembly, without operands and with them, to be asked for its binary. It is
// never launched.
//
// Grid: (1), work-group (1,1,1).
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void probe_assembly(__global int* out) {
  int value = 1;
  __asm__ volatile("");
  __asm__ volatile("" : "+r"(value));
  out[0] = value;
}
