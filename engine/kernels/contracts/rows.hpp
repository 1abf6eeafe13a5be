// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that take a matrix row by row: a work-item, or a work-group, for each.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out = norm(x + residual) * gamma + beta, and out quantized as q and r.
template <class A>
struct AddNorm {
  A x{}, x_type{}, x_scale{}, x_zero_point{}, residual{}, residual_type{}, residual_scale{},
      residual_zero_point{}, gamma{}, beta{}, eps{}, rms{}, sum{}, out{}, q{}, q_type{},
      q_inv_scale{}, q_zero_point{}, r{}, r_type{}, r_inv_scale{}, r_zero_point{}, rows{}, hidden{},
      rows_per_item{};
  static constexpr Field<AddNorm, A> fields[] = {
      {&AddNorm::x, "x", "f32|u8|i8@x_type"},  // [rows, hidden]
      {&AddNorm::x_type, "x_type", "int"},
      {&AddNorm::x_scale, "x_scale", "f32?"},                        // [hidden] of an integer x
      {&AddNorm::x_zero_point, "x_zero_point", "f32?"},              // [hidden]
      {&AddNorm::residual, "residual", "f32|u8|i8@residual_type?"},  // [rows, hidden]
      {&AddNorm::residual_type, "residual_type", "int"},
      {&AddNorm::residual_scale, "residual_scale", "f32?"},
      {&AddNorm::residual_zero_point, "residual_zero_point", "f32?"},
      {&AddNorm::gamma, "gamma", "f32"},  // [hidden]
      {&AddNorm::beta, "beta", "f32?"},   // [hidden]
      {&AddNorm::eps, "eps", "float"},
      {&AddNorm::rms, "rms", "int"},             // 1: RMSNorm, 0: LayerNorm
      {&AddNorm::sum, "sum", "f32?"},            // [rows, hidden]: x + residual
      {&AddNorm::out, "out", "f32?"},            // [rows, hidden]
      {&AddNorm::q, "q", "u8|i8|bf16@q_type?"},  // [rows, hidden]; with its type code, 1 / scale
                                                 // and zero point of each column
      {&AddNorm::q_type, "q_type", "int"},
      {&AddNorm::q_inv_scale, "q_inv_scale", "f32?"},
      {&AddNorm::q_zero_point, "q_zero_point", "f32?"},
      {&AddNorm::r, "r", "u8|i8@r_type?"},  // [rows, hidden]; with its type code, 1 / scale and
                                            // zero point of each column
      {&AddNorm::r_type, "r_type", "int"},
      {&AddNorm::r_inv_scale, "r_inv_scale", "f32?"},
      {&AddNorm::r_zero_point, "r_zero_point", "f32?"},
      {&AddNorm::rows, "rows", "int"},
      {&AddNorm::hidden, "hidden", "int"},
      {&AddNorm::rows_per_item, "rows_per_item", "int"},
  };
};

/// As AddNorm, where x is the result of a GemmS8 whose sums are in parts: f32, without activation,
/// by scales that are known.
template <class A>
struct AddNormParts {
  A partials{}, colsum{}, scale{}, bias{}, zero_point{}, a_signed{}, parts{}, residual{},
      residual_type{}, residual_scale{}, residual_zero_point{}, gamma{}, beta{}, eps{}, rms{},
      sum{}, out{}, q{}, q_type{}, q_inv_scale{}, q_zero_point{}, r{}, r_type{}, r_inv_scale{},
      r_zero_point{}, rows{}, hidden{};
  static constexpr Field<AddNormParts, A> fields[] = {
      {&AddNormParts::partials, "partials", "raw"},  // i32 [parts, rows, hidden]
      {&AddNormParts::colsum, "colsum", "raw"},      // i32 [hidden], as that of GemmS8
      {&AddNormParts::scale, "scale", "f32"},        // [hidden]
      {&AddNormParts::bias, "bias", "f32?"},         // [hidden]
      {&AddNormParts::zero_point, "zero_point", "int"},
      {&AddNormParts::a_signed, "a_signed", "int"},
      {&AddNormParts::parts, "parts", "int"},
      {&AddNormParts::residual, "residual", "f32|u8|i8@residual_type?"},  // [rows, hidden]
      {&AddNormParts::residual_type, "residual_type", "int"},
      {&AddNormParts::residual_scale, "residual_scale", "f32?"},
      {&AddNormParts::residual_zero_point, "residual_zero_point", "f32?"},
      {&AddNormParts::gamma, "gamma", "f32"},  // [hidden]
      {&AddNormParts::beta, "beta", "f32?"},   // [hidden]
      {&AddNormParts::eps, "eps", "float"},
      {&AddNormParts::rms, "rms", "int"},             // 1: RMSNorm, 0: LayerNorm
      {&AddNormParts::sum, "sum", "f32?"},            // [rows, hidden]: x + residual
      {&AddNormParts::out, "out", "f32?"},            // [rows, hidden]
      {&AddNormParts::q, "q", "u8|i8|bf16@q_type?"},  // [rows, hidden], as those of AddNorm
      {&AddNormParts::q_type, "q_type", "int"},
      {&AddNormParts::q_inv_scale, "q_inv_scale", "f32?"},
      {&AddNormParts::q_zero_point, "q_zero_point", "f32?"},
      {&AddNormParts::r, "r", "u8|i8@r_type?"},
      {&AddNormParts::r_type, "r_type", "int"},
      {&AddNormParts::r_inv_scale, "r_inv_scale", "f32?"},
      {&AddNormParts::r_zero_point, "r_zero_point", "f32?"},
      {&AddNormParts::rows, "rows", "int"},
      {&AddNormParts::hidden, "hidden", "int"},
  };
};

/// As AddNorm, of the sum of rows of three tables.
template <class A>
struct EmbedNorm {
  A input_ids{}, position_ids{}, token_type_ids{}, word_table{}, word_rows{}, position_table{},
      position_rows{}, type_table{}, type_rows{}, table_type{}, gamma{}, beta{}, eps{}, out{}, q{},
      q_type{}, q_inv_scale{}, q_zero_point{}, r{}, r_type{}, r_inv_scale{}, r_zero_point{},
      error{}, tokens{}, hidden{}, rows_per_item{};
  static constexpr Field<EmbedNorm, A> fields[] = {
      {&EmbedNorm::input_ids, "input_ids", "i32"},                   // [tokens]
      {&EmbedNorm::position_ids, "position_ids", "i32"},             // [tokens]
      {&EmbedNorm::token_type_ids, "token_type_ids", "i32?"},        // [tokens]
      {&EmbedNorm::word_table, "word_table", "f32|f16@table_type"},  // [word_rows, hidden]
      {&EmbedNorm::word_rows, "word_rows", "int"},
      {&EmbedNorm::position_table, "position_table", "f32|f16@table_type?"},
      {&EmbedNorm::position_rows, "position_rows", "int"},
      {&EmbedNorm::type_table, "type_table", "f32|f16@table_type?"},
      {&EmbedNorm::type_rows, "type_rows", "int"},
      {&EmbedNorm::table_type, "table_type", "int"},
      {&EmbedNorm::gamma, "gamma", "f32"},  // [hidden]
      {&EmbedNorm::beta, "beta", "f32?"},   // [hidden]
      {&EmbedNorm::eps, "eps", "float"},
      {&EmbedNorm::out, "out", "f32?"},            // [tokens, hidden]
      {&EmbedNorm::q, "q", "u8|i8|bf16@q_type?"},  // [rows, hidden]; with its type code, 1 / scale
                                                   // and zero point of each column
      {&EmbedNorm::q_type, "q_type", "int"},
      {&EmbedNorm::q_inv_scale, "q_inv_scale", "f32?"},
      {&EmbedNorm::q_zero_point, "q_zero_point", "f32?"},
      {&EmbedNorm::r, "r", "u8|i8@r_type?"},  // [rows, hidden]; with its type code, 1 / scale and
                                              // zero point of each column
      {&EmbedNorm::r_type, "r_type", "int"},
      {&EmbedNorm::r_inv_scale, "r_inv_scale", "f32?"},
      {&EmbedNorm::r_zero_point, "r_zero_point", "f32?"},
      {&EmbedNorm::error, "error", "i32"},  // set where an id is outside its table
      {&EmbedNorm::tokens, "tokens", "int"},
      {&EmbedNorm::hidden, "hidden", "int"},
      {&EmbedNorm::rows_per_item, "rows_per_item", "int"},
  };
};

/// out = softmax(x), or its logarithm, along the last axis.
template <class A>
struct SoftmaxF32 {
  A x{}, out{}, rows{}, size{}, logarithm{}, rows_per_item{};
  static constexpr Field<SoftmaxF32, A> fields[] = {
      {&SoftmaxF32::x, "x", "f32"},  // [rows, size]
      {&SoftmaxF32::out, "out", "f32"},
      {&SoftmaxF32::rows, "rows", "int"},
      {&SoftmaxF32::size, "size", "int"},
      {&SoftmaxF32::logarithm, "logarithm", "int"},
      {&SoftmaxF32::rows_per_item, "rows_per_item", "int"},
  };
};

/// y = round(x / scale) with a scale for each row, measured.
template <class A>
struct QuantizeRows {
  A x{}, y{}, y_type{}, scale{}, least{}, rows{}, hidden{}, rows_per_item{};
  static constexpr Field<QuantizeRows, A> fields[] = {
      {&QuantizeRows::x, "x", "f32"},  // [rows, hidden]
      {&QuantizeRows::y, "y", "u8|i8@y_type"},
      {&QuantizeRows::y_type, "y_type", "int"},
      {&QuantizeRows::scale, "scale", "f32"},    // [rows]
      {&QuantizeRows::least, "least", "float"},  // scale of a row of zeros
      {&QuantizeRows::rows, "rows", "int"},
      {&QuantizeRows::hidden, "hidden", "int"},
      {&QuantizeRows::rows_per_item, "rows_per_item", "int"},
  };
};

/// out = one row for each sequence of x, by ops/operands.hpp.
template <class A>
struct Pool {
  A x{}, seq_offsets{}, key_mask{}, out{}, kind{}, hidden{}, columns{}, unit_norm{}, least_norm{},
      batch{};
  static constexpr Field<Pool, A> fields[] = {
      {&Pool::x, "x", "f32"},                       // [tokens, hidden]
      {&Pool::seq_offsets, "seq_offsets", "i32?"},  // [batch + 1]; absent: each row is a sequence
      {&Pool::key_mask, "key_mask", "u8?"},         // [tokens]
      {&Pool::out, "out", "f32"},                   // [batch, columns]
      {&Pool::kind, "kind", "int"},                 // place in operands::pool::kinds
      {&Pool::hidden, "hidden", "int"},
      {&Pool::columns, "columns", "int"},
      {&Pool::unit_norm, "unit_norm", "int"},
      {&Pool::least_norm, "least_norm", "float"},
      {&Pool::batch, "batch", "int"},
  };
};

/// out = x with the columns of each head turned by their places, by ops/operands.hpp; quantized
/// where it is integers.
template <class A>
struct Rotary {
  A x{}, cosines{}, sines{}, out{}, out_type{}, out_inv_scale{}, out_zero_point{}, seq_offsets{},
      heads{}, head_size{}, table_rows{}, rows_per_item{};
  static constexpr Field<Rotary, A> fields[] = {
      {&Rotary::x, "x", "f32"},                     // [tokens, heads * head_size]
      {&Rotary::cosines, "cosines", "f32"},         // [seq, head_size], or of each sequence
      {&Rotary::sines, "sines", "f32"},             // the same
      {&Rotary::out, "out", "f32|u8|i8@out_type"},  // as x
      {&Rotary::out_type, "out_type", "int"},
      {&Rotary::out_inv_scale, "out_inv_scale", "f32?"},  // [heads * head_size] of an integer out
      {&Rotary::out_zero_point, "out_zero_point", "f32?"},
      {&Rotary::seq_offsets, "seq_offsets", "i32"},  // [batch + 1]
      {&Rotary::heads, "heads", "int"},
      {&Rotary::head_size, "head_size", "int"},
      {&Rotary::table_rows, "table_rows", "int"},  // of a sequence; 0: one table for all
      {&Rotary::rows_per_item, "rows_per_item", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract row_contracts[] = {
    row<AddNorm>("add_norm"),           row<AddNormParts>("add_norm_parts"),
    row<EmbedNorm>("embed_norm"),       row<Pool>("pool"),
    row<QuantizeRows>("quantize_rows"), row<Rotary>("rotary"),
    row<SoftmaxF32>("softmax_f32"),
};

}  // namespace bertcl::kernels
