// SPDX-License-Identifier: Apache-2.0
// Batched integer MatMul with any strides for GPUs (matmul_group.clh), exact in s32: the contract
// of matmul_s32_batched.cl, block_rows apart.
#include "gemm/matmul_s32.clh"

#define Value int
#define ADD_PRODUCT(a, b, sum) ((sum) + (a) * (b))
#define A_AT(row, l)                                                                               \
  (load(a, (long)(row) * a_row + (long)(l) * a_column, a_type) -                                   \
   load_zero_point(a_zero_point, row, a_zero_step, a_type))
#define B_AT(l, column)                                                                            \
  (load(b, (long)(l) * b_row + (long)(column) * b_column, b_type) -                                \
   load_zero_point(b_zero_point, column, b_zero_step, b_type))
#define RESULT(sum) (sum)
#define SIGNATURE matmul_s32_batched(MATMUL_S32_PARAMETERS)
#include "gemm/matmul_group.clh"
