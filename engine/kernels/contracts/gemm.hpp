// SPDX-License-Identifier: Apache-2.0
// Contracts of the GEMMs with constant weights: out[M, N] = activation(a[M, K] x b[K, N] +
// bias). The sizes of tiles and panels are those of the variant.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out = requantize(activation(scale * sum of (a - zero_point) * (b - w_zero_point) + bias)); the
/// sums are exact in int32.
template <class A>
struct GemmS8 {
  A a{}, b{}, colsum{}, scale{}, bias{}, out_inv_scale{}, out_zero_point{}, out{}, M{}, N{}, K{},
      zero_point{}, a_signed{}, has_bias{}, activation{}, out_type{}, x_scale{}, x_zero_point{},
      row_sums{}, w_zero_point{}, row_scale{};
  static constexpr Field<GemmS8, A> fields[] = {
      {&GemmS8::a, "a", "u8|i8"},                           // [M, K]
      {&GemmS8::b, "b", "raw"},                             // panels of prepack_s8.cl
      {&GemmS8::colsum, "colsum", "raw"},                   // i32 [N]: sums of the columns of b
      {&GemmS8::scale, "scale", "f32"},                     // [N]
      {&GemmS8::bias, "bias", "f32?"},                      // [N]
      {&GemmS8::out_inv_scale, "out_inv_scale", "f32?"},    // [N]
      {&GemmS8::out_zero_point, "out_zero_point", "f32?"},  // [N]
      {&GemmS8::out, "out", "f32|u8|i8|i32@out_type"},      // [M, N]
      {&GemmS8::M, "M", "int"},
      {&GemmS8::N, "N", "int"},
      {&GemmS8::K, "K", "int"},
      {&GemmS8::zero_point, "zero_point", "int"},  // of a, unless x_zero_point is given
      {&GemmS8::a_signed, "a_signed", "int"},      // 1: a is i8
      {&GemmS8::has_bias, "has_bias", "int"},
      {&GemmS8::activation, "activation", "int"},       // activation.clh
      {&GemmS8::out_type, "out_type", "int"},           // types.clh
      {&GemmS8::x_scale, "x_scale", "f32?"},            // [1], measured: a factor of scale
      {&GemmS8::x_zero_point, "x_zero_point", "u8?"},   // [1], measured
      {&GemmS8::row_sums, "row_sums", "i32?"},          // [M] of a - zero_point; with w_zero_point
      {&GemmS8::w_zero_point, "w_zero_point", "i32?"},  // [N]
      {&GemmS8::row_scale, "row_scale", "f32?"},        // [M], measured: a factor of scale
  };
};

/// partials[part] = sums of a * b over that part of K.
template <class A>
struct GemmS8Partial {
  A a{}, b{}, partials{}, M{}, N{}, K{}, a_signed{}, parts{};
  static constexpr Field<GemmS8Partial, A> fields[] = {
      {&GemmS8Partial::a, "a", "u8|i8"},              // [M, K]
      {&GemmS8Partial::b, "b", "raw"},                // panels of prepack_s8.cl
      {&GemmS8Partial::partials, "partials", "raw"},  // i32 [parts, M, N]
      {&GemmS8Partial::M, "M", "int"},
      {&GemmS8Partial::N, "N", "int"},
      {&GemmS8Partial::K, "K", "int"},
      {&GemmS8Partial::a_signed, "a_signed", "int"},
      {&GemmS8Partial::parts, "parts", "int"},
  };
};

/// The result of GemmS8 from partials; the other arguments are those of GemmS8.
template <class A>
struct GemmS8Finish {
  A partials{}, colsum{}, scale{}, bias{}, out_inv_scale{}, out_zero_point{}, out{}, M{}, N{},
      zero_point{}, a_signed{}, has_bias{}, activation{}, out_type{}, x_scale{}, x_zero_point{},
      row_sums{}, w_zero_point{}, row_scale{}, parts{};
  static constexpr Field<GemmS8Finish, A> fields[] = {
      {&GemmS8Finish::partials, "partials", "raw"},
      {&GemmS8Finish::colsum, "colsum", "raw"},
      {&GemmS8Finish::scale, "scale", "f32"},
      {&GemmS8Finish::bias, "bias", "f32?"},
      {&GemmS8Finish::out_inv_scale, "out_inv_scale", "f32?"},
      {&GemmS8Finish::out_zero_point, "out_zero_point", "f32?"},
      {&GemmS8Finish::out, "out", "f32|u8|i8|i32@out_type"},
      {&GemmS8Finish::M, "M", "int"},
      {&GemmS8Finish::N, "N", "int"},
      {&GemmS8Finish::zero_point, "zero_point", "int"},
      {&GemmS8Finish::a_signed, "a_signed", "int"},
      {&GemmS8Finish::has_bias, "has_bias", "int"},
      {&GemmS8Finish::activation, "activation", "int"},
      {&GemmS8Finish::out_type, "out_type", "int"},
      {&GemmS8Finish::x_scale, "x_scale", "f32?"},
      {&GemmS8Finish::x_zero_point, "x_zero_point", "u8?"},
      {&GemmS8Finish::row_sums, "row_sums", "i32?"},
      {&GemmS8Finish::w_zero_point, "w_zero_point", "i32?"},
      {&GemmS8Finish::row_scale, "row_scale", "f32?"},
      {&GemmS8Finish::parts, "parts", "int"},
  };
};

/// a in f32, b in f32 or f16.
template <class A>
struct GemmF32 {
  A a{}, b{}, bias{}, out{}, M{}, N{}, K{}, has_bias{}, activation{};
  static constexpr Field<GemmF32, A> fields[] = {
      {&GemmF32::a, "a", "f32"},         // [M, K]
      {&GemmF32::b, "b", "raw"},         // panels of prepack_f32.cl or prepack_pairs.cl
      {&GemmF32::bias, "bias", "f32?"},  // [N]
      {&GemmF32::out, "out", "f32"},     // [M, N]
      {&GemmF32::M, "M", "int"},
      {&GemmF32::N, "N", "int"},
      {&GemmF32::K, "K", "int"},
      {&GemmF32::has_bias, "has_bias", "int"},
      {&GemmF32::activation, "activation", "int"},  // activation.clh
  };
};

/// a and b rounded to bf16, sums in f32.
template <class A>
struct GemmBf16 {
  A a{}, b{}, bias{}, out{}, M{}, N{}, K{}, has_bias{}, activation{}, a_type{}, out_type{};
  static constexpr Field<GemmBf16, A> fields[] = {
      {&GemmBf16::a, "a", "f32|bf16@a_type"},        // [M, K]
      {&GemmBf16::b, "b", "raw"},                    // panels of prepack_pairs.cl
      {&GemmBf16::bias, "bias", "f32?"},             // [N]
      {&GemmBf16::out, "out", "f32|bf16@out_type"},  // [M, N]
      {&GemmBf16::M, "M", "int"},
      {&GemmBf16::N, "N", "int"},
      {&GemmBf16::K, "K", "int"},
      {&GemmBf16::has_bias, "has_bias", "int"},
      {&GemmBf16::activation, "activation", "int"},  // activation.clh
      {&GemmBf16::a_type, "a_type", "int"},          // types.clh
      {&GemmBf16::out_type, "out_type", "int"},
  };
};

/// sums[m] = sum over k of a[m, k] - zero_point.
template <class A>
struct RowSums {
  A a{}, a_type{}, zero_point{}, x_zero_point{}, sums{}, M{}, K{}, rows_per_item{};
  static constexpr Field<RowSums, A> fields[] = {
      {&RowSums::a, "a", "u8|i8@a_type"},  // [M, K]
      {&RowSums::a_type, "a_type", "int"},
      {&RowSums::zero_point, "zero_point", "int"},      // unless x_zero_point is given
      {&RowSums::x_zero_point, "x_zero_point", "u8?"},  // [1], measured
      {&RowSums::sums, "sums", "i32"},                  // [M]
      {&RowSums::M, "M", "int"},
      {&RowSums::K, "K", "int"},
      {&RowSums::rows_per_item, "rows_per_item", "int"},
  };
};

/// c = alpha * a x b for a batch of matrices; their starts follow batch_shape.
template <class A>
struct MatMulF32 {
  A a{}, a_row{}, a_column{}, b{}, b_row{}, b_column{}, c{}, m{}, n{}, k{}, alpha{}, batch_shape{},
      rank{}, block_rows{};
  static constexpr Field<MatMulF32, A> fields[] = {
      {&MatMulF32::a, "a", "f32"},  // m x k, with strides of rows and columns in elements
      {&MatMulF32::a_row, "a_row", "int"},
      {&MatMulF32::a_column, "a_column", "int"},
      {&MatMulF32::b, "b", "f32"},  // k x n
      {&MatMulF32::b_row, "b_row", "int"},
      {&MatMulF32::b_column, "b_column", "int"},
      {&MatMulF32::c, "c", "f32"},  // m x n, dense
      {&MatMulF32::m, "m", "int"},
      {&MatMulF32::n, "n", "int"},
      {&MatMulF32::k, "k", "int"},
      {&MatMulF32::alpha, "alpha", "float"},
      {&MatMulF32::batch_shape, "batch_shape", "i32"},  // extents, then strides of a and b
      {&MatMulF32::rank, "rank", "int"},
      {&MatMulF32::block_rows, "block_rows", "int"},  // of a work-item
  };
};

/// c = (a - a_zero_point) x (b - b_zero_point) in int32, for a batch of matrices.
template <class A>
struct MatMulS32 {
  A a{}, a_row{}, a_column{}, a_type{}, a_zero_point{}, a_zero_step{}, b{}, b_row{}, b_column{},
      b_type{}, b_zero_point{}, b_zero_step{}, c{}, m{}, n{}, k{}, batch_shape{}, rank{},
      block_rows{};
  static constexpr Field<MatMulS32, A> fields[] = {
      {&MatMulS32::a, "a", "u8|i8@a_type"},  // m x k
      {&MatMulS32::a_row, "a_row", "int"},
      {&MatMulS32::a_column, "a_column", "int"},
      {&MatMulS32::a_type, "a_type", "int"},
      {&MatMulS32::a_zero_point, "a_zero_point", "u8|i8=a?"},  // [1], or [m] with a_zero_step 1
      {&MatMulS32::a_zero_step, "a_zero_step", "int"},
      {&MatMulS32::b, "b", "u8|i8@b_type"},  // k x n
      {&MatMulS32::b_row, "b_row", "int"},
      {&MatMulS32::b_column, "b_column", "int"},
      {&MatMulS32::b_type, "b_type", "int"},
      {&MatMulS32::b_zero_point, "b_zero_point", "u8|i8=b?"},  // [1], or [n] with b_zero_step 1
      {&MatMulS32::b_zero_step, "b_zero_step", "int"},
      {&MatMulS32::c, "c", "i32"},  // m x n
      {&MatMulS32::m, "m", "int"},
      {&MatMulS32::n, "n", "int"},
      {&MatMulS32::k, "k", "int"},
      {&MatMulS32::batch_shape, "batch_shape", "i32"},  // extents, then strides of a and b
      {&MatMulS32::rank, "rank", "int"},
      {&MatMulS32::block_rows, "block_rows", "int"},  // of a work-item
  };
};

/// c[m, n] = a[m, k] x b[k, n] by CLBlast.
template <class A>
struct LibraryGemm {
  A a{}, b{}, c{};
  static constexpr Field<LibraryGemm, A> fields[] = {
      {&LibraryGemm::a, "a", "T"},
      {&LibraryGemm::b, "b", "T"},
      {&LibraryGemm::c, "c", "T"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract gemm_contracts[] = {
    row<LibraryGemm>("clblast_fp16", "f16"),
    row<LibraryGemm>("clblast_fp32", "f32"),
    row<GemmBf16>("gemm_bf16"),
    row<GemmF32>("gemm_f32"),
    row<GemmS8>("gemm_s8"),
    row<GemmS8Finish>("gemm_s8_finish"),
    row<GemmS8Partial>("gemm_s8_partial"),
    row<MatMulF32>("matmul_f32_batched"),
    row<MatMulS32>("matmul_s32_batched"),
    row<RowSums>("row_sums"),
};

}  // namespace bertcl::kernels
