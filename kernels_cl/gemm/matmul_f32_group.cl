// SPDX-License-Identifier: Apache-2.0
// Batched f32 MatMul with any strides for GPUs (matmul_group.clh): the contract of
// matmul_f32_batched.cl, block_rows apart.
#define Value float
#define ADD_PRODUCT(a, b, sum) fma((a), (b), (sum))
#define A_AT(row, l) a[(long)(row) * a_row + (long)(l) * a_column]
#define B_AT(l, column) b[(long)(l) * b_row + (long)(column) * b_column]
#define RESULT(sum) (alpha * (sum))
#define SIGNATURE matmul_f32_batched(MATMUL_F32_PARAMETERS)
#include "gemm/parameters.clh"
#include "gemm/matmul_group.clh"
