// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that take a matrix row by row: a work-item, or a work-group, for each.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

// The result of a norm [rows, hidden], as it is and quantized as q and r: each with its type code,
// and with 1 / scale and zero point of each column.
#define BERTCL_NORM_RESULTS                                                                 \
  (out, "f32?"), (q, "u8|i8|bf16@q_type?"), (q_type, "int"), (q_inv_scale, "f32?"),         \
      (q_zero_point, "f32?"), (r, "u8|i8@r_type?"), (r_type, "int"), (r_inv_scale, "f32?"), \
      (r_zero_point, "f32?")
// The norm of `sum` = x + residual [rows, hidden]; all else [hidden]. rms: 1: RMSNorm, 0:
// LayerNorm.
#define BERTCL_NORM_OF_SUM                                                                         \
  (residual, "f32|u8|i8@residual_type?"), (residual_type, "int"), (residual_scale, "f32?"),        \
      (residual_zero_point, "f32?"), (gamma, "f32"), (beta, "f32?"), (eps, "float"), (rms, "int"), \
      (sum, "f32?"), BERTCL_NORM_RESULTS

/// out = norm(x + residual) * gamma + beta, and out quantized as q and r.
BERTCL_CONTRACT(AddNorm, (x, "f32|u8|i8@x_type"),    // [rows, hidden]
                (x_type, "int"), (x_scale, "f32?"),  // [hidden] of an integer x
                (x_zero_point, "f32?"),              // [hidden]
                BERTCL_NORM_OF_SUM, (rows, "int"), (hidden, "int"), (rows_per_item, "int"));

/// As AddNorm, where x is the result of a GemmS8 whose sums are in parts: f32, without activation,
/// by scales that are known.
BERTCL_CONTRACT(AddNormSplitK, (partials, "raw"),  // i32 [splits, rows, hidden]
                (column_sums, "raw"),              // i32 [hidden], as that of GemmS8
                (scale, "f32"),                    // [hidden]
                (bias, "f32?"),                    // [hidden]
                (zero_point, "int"), (a_signed, "int"), (splits, "int"), BERTCL_NORM_OF_SUM,
                (rows, "int"), (hidden, "int"));

/// As AddNorm, of the sum of rows of three tables.
BERTCL_CONTRACT(EmbedNorm, (input_ids, "i32"),       // [tokens]
                (position_ids, "i32"),               // [tokens]
                (token_type_ids, "i32?"),            // [tokens]
                (word_table, "f32|f16@table_type"),  // [word_rows, hidden]
                (word_rows, "int"), (position_table, "f32|f16@table_type?"), (position_rows, "int"),
                (type_table, "f32|f16@table_type?"), (type_rows, "int"), (table_type, "int"),
                (gamma, "f32"),  // [hidden]
                (beta, "f32?"),  // [hidden]
                (eps, "float"), BERTCL_NORM_RESULTS,
                (error, "i32"),  // set where an id is outside its table
                (tokens, "int"), (hidden, "int"), (rows_per_item, "int"));

/// out = softmax(x), or its logarithm, along the last axis.
BERTCL_CONTRACT(SoftmaxF32, (x, "f32"),  // [rows, size]
                (out, "f32"), (rows, "int"), (size, "int"), (logarithm, "int"),
                (rows_per_item, "int"));

/// y = round(x / scale) with a scale for each row, measured.
BERTCL_CONTRACT(QuantizeRows, (x, "f32"),                              // [rows, hidden]
                (y, "u8|i8@y_type"), (y_type, "int"), (scale, "f32"),  // [rows]
                (least, "float"),                                      // scale of a row of zeros
                (rows, "int"), (hidden, "int"), (rows_per_item, "int"));

/// out = one row for each sequence of x, by ops/operands.hpp.
BERTCL_CONTRACT(Pool, (x, "f32"),        // [tokens, hidden]
                (seq_offsets, "i32?"),   // [batch + 1]; absent: each row is a sequence
                (key_mask, "u8|bool?"),  // [tokens]
                (out, "f32"),            // [batch, columns]
                (kind, "int"),           // place in operands::pool::kinds
                (hidden, "int"), (columns, "int"), (unit_norm, "int"), (min_norm, "float"),
                (batch, "int"));

/// out = x with the columns of each head turned by their places, by ops/operands.hpp; quantized
/// where it is integers.
BERTCL_CONTRACT(Rotary, (x, "f32"),           // [tokens, heads * head_size]
                (cosines, "f32"),             // [seq, head_size], or of each sequence
                (sines, "f32"),               // the same
                (out, "f32|u8|i8@out_type"),  // as x
                (out_type, "int"),
                (out_inv_scale, "f32?"),  // [heads * head_size] of an integer out
                (out_zero_point, "f32?"), (seq_offsets, "i32"),  // [batch + 1]
                (heads, "int"), (head_size, "int"),
                (table_rows, "int"),  // of a sequence; 0: one table for all
                (rows_per_item, "int"));

consteval auto rows_contracts() {
  return std::array{
      contract_for<AddNorm>("add_norm"),           contract_for<AddNormSplitK>("add_norm_split_k"),
      contract_for<EmbedNorm>("embed_norm"),       contract_for<Pool>("pool"),
      contract_for<QuantizeRows>("quantize_rows"), contract_for<Rotary>("rotary"),
      contract_for<SoftmaxF32>("softmax_f32"),
  };
}

}  // namespace bertcl::kernels
