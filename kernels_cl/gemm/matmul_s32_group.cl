// SPDX-License-Identifier: Apache-2.0
// Batched integer MatMul with any strides for GPUs (matmul_group.clh), exact in s32: the contract
// of matmul_s32_batched.cl, block_rows apart.
//
// Grid: (ITEMS * ceil(n / 64), ceil(m / 64), batches), work-group (ITEMS, 1, 1). Bounds: none.
#define Value int
#define ADD_PRODUCT(a, b, sum) ((sum) + (a) * (b))
#include "gemm/matmul_group.clh"
#include "lib/narrow.clh"
#include "lib/strided.clh"
#include "lib/types.clh"

static int load(__global const uchar* data, long i, int type) {
  return type == TYPE_U8 ? (int)data[i] : (int)as_char(data[i]);
}

static int load_zero_point(__global const uchar* zero_points, int i, int step, int type) {
  return zero_points ? load(zero_points, (long)i * step, type) : 0;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW
__kernel void matmul_s32_batched(__global const uchar* a, int a_row, int a_column, int a_type,
                                 __global const uchar* a_zero_point, int a_zero_step,
                                 __global const uchar* b, int b_row, int b_column, int b_type,
                                 __global const uchar* b_zero_point, int b_zero_step,
                                 __global int* c, int m, int n, int k,
                                 __global const int* batch_shape, int rank, int block_rows) {
  __local int a_tile[DEPTH][PITCH], b_tile[DEPTH][PITCH];
  const int item = get_local_id(0), tx = item % 16, ty = item / 16;
  const int row0 = (int)get_group_id(1) * SIDE, column0 = (int)get_group_id(0) * SIDE;
  const int batch = get_group_id(2);
  a += place_of(batch, rank, batch_shape, batch_shape + rank);
  b += place_of(batch, rank, batch_shape, batch_shape + 2 * rank);
  c += (size_t)batch * m * n;

  int sums[4][4] = {{0}};
  for (int start = 0; start < k; start += DEPTH) {
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
      const int2 of_a = copied(item, i, a_column == 1), of_b = copied(item, i, b_row == 1);
      const int row = row0 + of_a.x, column = column0 + of_b.x;
      const int a_k = start + of_a.y, b_k = start + of_b.y;
      a_tile[of_a.y][of_a.x] =
          row < m && a_k < k ? load(a, (long)row * a_row + (long)a_k * a_column, a_type) -
                                   load_zero_point(a_zero_point, row, a_zero_step, a_type)
                             : 0;
      b_tile[of_b.y][of_b.x] =
          column < n && b_k < k ? load(b, (long)b_k * b_row + (long)column * b_column, b_type) -
                                      load_zero_point(b_zero_point, column, b_zero_step, b_type)
                                : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_products(a_tile, b_tile, tx, ty, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
      if (row < m && column < n) c[(size_t)row * n + column] = sums[i][j];
    }
  }
}
