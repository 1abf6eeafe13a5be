// SPDX-License-Identifier: Apache-2.0
// fp32 GEMM for GPUs: out[M][N] = activation(A[M][K] x B[K][N] + bias).
//
//              TILE_N           A work-group of 16 x 16 work-items makes TILE_M x TILE_N. Strips
//          o----o----o          of DEPTH of K pass through local memory, A transposed: two of
//   DEPTH  | 64 | 64 |          each, so that one is copied while the other is multiplied. A
//          o----o----o          work-item keeps ROWS rows of four columns in each panel:
//   DEPTH                         rows  ROWS * ty ..   columns  64 * panel + 4 * tx ..
//   o--o   o----o----o
//   |  |   |         | TILE_M   Each sum adds its products in the order of K, as gemm_f32_ref
//   o--o   o----o----o          does.
//
// Layout: panel width 64, K group 1: B[ceil(N/64)][K][64], zero-padded past N; f32, or f16 with
// -DB_HALF=1. Grid: (ITEMS * ceil(M / TILE_M), ceil(N / TILE_N)), work-group (ITEMS, 1, 1).
// Bounds: a and b begin at multiples of 16 bytes. Arguments: see gemm_f32_ref.cl.
#include "gemm/epilogue4.clh"
#include "gemm/weights.clh"
#include "lib/narrow.clh"

#ifndef TILE_M
#define TILE_M 128  // rows of a work-group: 32, 64 or 128
#endif
#ifndef TILE_N
#define TILE_N 128  // its columns: 64 or 128
#endif

#define ITEMS 256
#define DEPTH 8
#define PANEL 64
#define ROWS (TILE_M / 16)
#define VECTORS (TILE_N / PANEL)
#define A_COPIES (TILE_M * DEPTH / 4)  // of four values each
#define B_COPIES (TILE_N * DEPTH / 4)
#define A_PITCH (TILE_M + 4)  // the two halves of a warp store into different banks

// Four weights as they are stored. They are converted on their way to local memory: a conversion
// at the load waits for it, and so would the products of the strip before.
#if B_HALF
typedef ushort4 Weights;
#else
typedef float4 Weights;
#endif

static float4 floats_of(Weights weights) {
#if B_HALF
  return vload_half4(0, (const half*)&weights);
#else
  return weights;
#endif
}

// Values k .. k + 3 of a row of A, 0 past K.
static float4 load_a4(__global const float* row, int k, int K) {
  if (K % 4 == 0) return k < K ? *(__global const float4*)(row + k) : (float4)(0.0f);
  float4 x = 0.0f;
  if (k < K) x.s0 = row[k];
  if (k + 1 < K) x.s1 = row[k + 1];
  if (k + 2 < K) x.s2 = row[k + 2];
  if (k + 3 < K) x.s3 = row[k + 3];
  return x;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) NARROW __kernel void gemm_f32(
    GEMM_F32_PARAMETERS(Weight)) {
  __local float a_tile[2][DEPTH][A_PITCH] __attribute__((aligned(16)));
  __local float b_tile[2][DEPTH][TILE_N] __attribute__((aligned(16)));
  const int item = get_local_id(0), tx = item % 16, ty = item / 16;
  const int row0 = (int)get_group_id(0) * TILE_M, column0 = (int)get_group_id(1) * TILE_N;

  // What this work-item copies: four values along K of a row of A, four columns of one k of B.
  const int a_row = item / 2, a_k = item % 2 * 4;
  const int b_k = item / (TILE_N / 4), b_column = item % (TILE_N / 4) * 4;
  const bool copies_a = item < A_COPIES, copies_b = item < B_COPIES && column0 + b_column < N;
  __global const float* from_a = a + (size_t)min(row0 + a_row, M - 1) * K;
  __global const Weight* from_b = b + (size_t)((column0 + b_column) / PANEL) * K * PANEL +
                                  (column0 + b_column) % PANEL;

  float4 sums[ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
#pragma unroll
    for (int j = 0; j < VECTORS; j++) sums[i][j] = (float4)(0.0f);
  }
  float4 next_a = copies_a ? load_a4(from_a, a_k, K) : (float4)(0.0f);
  Weights next_b = 0;
  if (copies_b && b_k < K) next_b = *(__global const Weights*)(from_b + (size_t)b_k * PANEL);
  // At least one step: see steps.clh.
  for (int k0 = 0, half_index = 0; k0 < max(K, 1); k0 += DEPTH, half_index ^= 1) {
    if (copies_a) {
      a_tile[half_index][a_k][a_row] = next_a.s0;
      a_tile[half_index][a_k + 1][a_row] = next_a.s1;
      a_tile[half_index][a_k + 2][a_row] = next_a.s2;
      a_tile[half_index][a_k + 3][a_row] = next_a.s3;
    }
    if (item < B_COPIES) *(__local float4*)&b_tile[half_index][b_k][b_column] = floats_of(next_b);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int k1 = k0 + DEPTH;
    if (copies_a && k1 < K) next_a = load_a4(from_a, k1 + a_k, K);
    if (k1 < K)
      next_b = copies_b && k1 + b_k < K
                   ? *(__global const Weights*)(from_b + (size_t)(k1 + b_k) * PANEL)
                   : (Weights)(0);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      float rows[ROWS];
      float4 columns[VECTORS];
#pragma unroll
      for (int i = 0; i < ROWS; i++) rows[i] = a_tile[half_index][k][ty * ROWS + i];
#pragma unroll
      for (int j = 0; j < VECTORS; j++)
        columns[j] = *(__local const float4*)&b_tile[half_index][k][j * PANEL + tx * 4];
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int j = 0; j < VECTORS; j++)
          sums[i][j] = fma((float4)(rows[i]), columns[j], sums[i][j]);
      }
    }
  }

#pragma unroll
  for (int j = 0; j < VECTORS; j++) {
    const int column = column0 + j * PANEL + tx * 4;
    if (column >= N) continue;
    const float4 c = has_bias ? load4_f32(bias, column, N) : (float4)(0.0f);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const int row = row0 + ty * ROWS + i;
      if (row >= M) continue;
      const float4 x = activate_v4(sums[i][j] + c, activation);
      STORE4(x, out + (size_t)row * N + column, N - column, float4);
    }
  }
}
