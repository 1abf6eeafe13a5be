// SPDX-License-Identifier: Apache-2.0
// Contracts of the GEMMs with constant weights: out[M, N] = activation(a[M, K] x b[K, N] +
// bias). The sizes of tiles and panels are those of the variant.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out = requantize(activation(scale * sum of (a - zero_point) * (b - w_zero_point) + bias)); the
/// sums are exact in int32.
BERTCL_CONTRACT(GemmS8, (a, "u8|i8"),             // [M, K]
                (b, "raw"),                       // panels of prepack_s8.cl
                (column_sums, "raw"),             // i32 [N]: sums of the columns of b
                (scale, "f32"),                   // [N]
                (bias, "f32?"),                   // [N]
                (out_inv_scale, "f32?"),          // [N]
                (out_zero_point, "f32?"),         // [N]
                (out, "f32|u8|i8|i32@out_type"),  // [M, N]
                (M, "int"), (N, "int"), (K, "int"),
                (zero_point, "int"),                     // of a, unless x_zero_point is given
                (a_signed, "int"),                       // 1: a is i8
                (has_bias, "int"), (activation, "int"),  // activation.clh
                (out_type, "int"),                       // types.clh
                (x_scale, "f32?"),                       // [1], measured: a factor of scale
                (x_zero_point, "u8?"),                   // [1], measured
                (row_sums, "i32?"),                      // [M] of a - zero_point; with w_zero_point
                (w_zero_point, "i32?"),                  // [N]
                (row_scale, "f32?"));                    // [M], measured: a factor of scale

/// partials[split] = sums of a * b over that split of K.
BERTCL_CONTRACT(GemmS8Partial, (a, "u8|i8"),  // [M, K]
                (b, "raw"),                   // panels of prepack_s8.cl
                (partials, "raw"),            // i32 [splits, M, N]
                (M, "int"), (N, "int"), (K, "int"), (a_signed, "int"), (splits, "int"));

/// The result of GemmS8 from partials; the other arguments are those of GemmS8.
BERTCL_CONTRACT(GemmS8Reduce, (partials, "raw"), (column_sums, "raw"), (scale, "f32"),
                (bias, "f32?"), (out_inv_scale, "f32?"), (out_zero_point, "f32?"),
                (out, "f32|u8|i8|i32@out_type"), (M, "int"), (N, "int"), (zero_point, "int"),
                (a_signed, "int"), (has_bias, "int"), (activation, "int"), (out_type, "int"),
                (x_scale, "f32?"), (x_zero_point, "u8?"), (row_sums, "i32?"),
                (w_zero_point, "i32?"), (row_scale, "f32?"), (splits, "int"));

/// a in f32, b in f32 or f16.
BERTCL_CONTRACT(GemmF32, (a, "f32"),  // [M, K]
                (b, "raw"),           // panels of prepack_f32.cl or prepack_pairs.cl
                (bias, "f32?"),       // [N]
                (out, "f32"),         // [M, N]
                (M, "int"), (N, "int"), (K, "int"), (has_bias, "int"),
                (activation, "int"));  // activation.clh

/// a and b rounded to bf16, sums in f32.
BERTCL_CONTRACT(GemmBf16, (a, "f32|bf16@a_type"),  // [M, K]
                (b, "raw"),                        // panels of prepack_pairs.cl
                (bias, "f32?"),                    // [N]
                (out, "f32|bf16@out_type"),        // [M, N]
                (M, "int"), (N, "int"), (K, "int"), (has_bias, "int"),
                (activation, "int"),  // activation.clh
                (a_type, "int"),      // types.clh
                (out_type, "int"));

/// sums[m] = sum over k of a[m, k] - zero_point.
BERTCL_CONTRACT(RowSums, (a, "u8|i8@a_type"),          // [M, K]
                (a_type, "int"), (zero_point, "int"),  // unless x_zero_point is given
                (x_zero_point, "u8?"),                 // [1], measured
                (sums, "i32"),                         // [M]
                (M, "int"), (K, "int"), (rows_per_item, "int"));

/// c = alpha * a x b for a batch of matrices; their starts follow batch_shape.
BERTCL_CONTRACT(MatMulF32, (a, "f32"),  // m x k, with strides of rows and columns in elements
                (a_row, "int"), (a_column, "int"), (b, "f32"),  // k x n
                (b_row, "int"), (b_column, "int"), (c, "f32"),  // m x n, dense
                (m, "int"), (n, "int"), (k, "int"), (alpha, "float"),
                (batch_shape, "i32"),                 // extents, then strides of a and b
                (rank, "int"), (block_rows, "int"));  // of a work-item

/// c = (a - a_zero_point) x (b - b_zero_point) in int32, for a batch of matrices.
BERTCL_CONTRACT(MatMulS32, (a, "u8|i8@a_type"),  // m x k
                (a_row, "int"), (a_column, "int"), (a_type, "int"),
                (a_zero_point, "u8|i8=a?"),                 // [1], or [m] with a_zero_step 1
                (a_zero_step, "int"), (b, "u8|i8@b_type"),  // k x n
                (b_row, "int"), (b_column, "int"), (b_type, "int"),
                (b_zero_point, "u8|i8=b?"),        // [1], or [n] with b_zero_step 1
                (b_zero_step, "int"), (c, "i32"),  // m x n
                (m, "int"), (n, "int"), (k, "int"),
                (batch_shape, "i32"),                 // extents, then strides of a and b
                (rank, "int"), (block_rows, "int"));  // of a work-item

/// c[m, n] = a[m, k] x b[k, n] by CLBlast.
BERTCL_CONTRACT(LibraryGemm, (a, "T"), (b, "T"), (c, "T"));

consteval auto gemm_contracts() {
  return std::array{
      contract_for<LibraryGemm>("clblast_fp16", "f16"),
      contract_for<LibraryGemm>("clblast_fp32", "f32"),
      contract_for<GemmBf16>("gemm_bf16"),
      contract_for<GemmF32>("gemm_f32"),
      contract_for<GemmS8>("gemm_s8"),
      contract_for<GemmS8Reduce>("gemm_s8_reduce"),
      contract_for<GemmS8Partial>("gemm_s8_partial"),
      contract_for<MatMulF32>("matmul_f32_batched"),
      contract_for<MatMulS32>("matmul_s32_batched"),
      contract_for<RowSums>("row_sums"),
  };
}

}  // namespace bertcl::kernels
