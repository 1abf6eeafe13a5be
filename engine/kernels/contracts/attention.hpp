// SPDX-License-Identifier: Apache-2.0
// Contracts of attention over packed tokens: out = softmax(q k + mask) v, head by head. q, k and v
// may lie in one buffer, side by side. PositionScores: what is added to their scores.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

// What is added to the scores, by the elements from row to row, key to key and head to head, and
// per row before the sequence; keys on each side of a row (0: all); query heads of a key head.
#define BERTCL_ATTENTION_BIAS                                                        \
  (bias, "f32?"), (bias_row, "int", 0), (bias_key, "int", 1), (bias_head, "int", 0), \
      (bias_token, "int", 0), (window, "int", 0), (heads_per_key, "int", 1)

/// Attention in f32 or bf16.
BERTCL_CONTRACT(AttentionFloat, (q, "T"), (q_stride, "int"),  // elements from row to row
                (q_offset, "int"),                            // of its first column
                (k, "T"), (k_stride, "int"),                  // elements from row to row
                (k_offset, "int"),                            // of its first column
                (v, "T"), (v_stride, "int"),                  // elements from row to row
                (v_offset, "int"),                            // of its first column
                (out, "T"),                                   // [tokens, heads * head_size]
                (seq_offsets, "i32"),    // [batch + 1]: first token of each sequence
                (key_mask, "u8|bool?"),  // [tokens]
                (use_mask, "int"), (heads, "int"), (head_size, "int"), (scale, "float"),  // of q k
                (block_rows, "int"),  // query rows of a work-item or a group
                BERTCL_ATTENTION_BIAS);

/// Sums in int32, softmax in f32.
BERTCL_CONTRACT(AttentionS8, (q, "u8|i8@q_type"), (q_stride, "int"),  // elements from row to row
                (q_offset, "int"),                                    // of its first column
                (q_type, "int"), (q_zero_point, "int"), (k, "u8|i8@k_type"),
                (k_stride, "int"),  // elements from row to row
                (k_offset, "int"),  // of its first column
                (k_type, "int"), (k_zero_point, "int"), (v, "u8|i8@v_type"),
                (v_stride, "int"),  // elements from row to row
                (v_offset, "int"),  // of its first column
                (v_type, "int"), (v_zero_point, "int"),
                (out, "f32|u8|i8@out_type"),  // [tokens, heads * head_size]
                (out_type, "int"), (out_inv_scale, "float"), (out_zero_point, "int"),
                (seq_offsets, "i32"),    // [batch + 1]: first token of each sequence
                (key_mask, "u8|bool?"),  // [tokens]
                (use_mask, "int"), (heads, "int"), (head_size, "int"),
                (qk_scale, "float"),         // of the sums of q k
                (p_inv_scale, "float"),      // 1 / scale of the probabilities
                (p_max, "int"),              // their largest integer
                (unnormalized, "int"),       // 1: they are divided by their sum after p v
                (pv_scale, "float"),         // of the sums of p v
                (score_inv_scale, "float"),  // 1 / scale of quantized scores; 0: they are not
                (score_low, "int"),          // of quantized scores
                (score_high, "int"), (block_rows, "int"),  // query rows of a work-item or a group
                BERTCL_ATTENTION_BIAS);

/// Scores of x with relative positions (position_scores in ops/operands.hpp), stored key by key.
/// positions: f32 [heads, count / 32, head_size, 32], or bytes in words (position_scores_s8).
BERTCL_CONTRACT(PositionScores, (x, "f32|u8|i8@x_type"),
                (x_stride, "int"),  // elements from row to row
                (x_offset, "int"),  // of its first column
                (x_type, "int"), (x_zero_point, "int"), (positions, "T"),
                (positions_zero_point, "int", 0),         // of those bytes
                (position_count, "int"), (index, "i32"),  // [seq, seq]
                (index_row, "int"),                       // its elements from row to row
                (of_keys, "int"),                         // 1: x are keys
                (addend, "f32?"),                         // as out
                (out, "f32"),                             // [heads, tokens, longest]
                (out_row, "int"),                         // its elements from key to key
                (out_head, "int"),                        // from head to head
                (seq_offsets, "i32"),                     // [batch + 1]
                (heads, "int"), (head_size, "int"), (scale, "float"),  // of the products
                (block_rows, "int"),  // tokens of x of a work-item or a group
                (error, "i32"));      // set where an index is outside

consteval auto attention_contracts() {
  return std::array{
      contract_for<AttentionFloat>("attention_bf16", "bf16"),
      contract_for<AttentionFloat>("attention_f32", "f32"),
      contract_for<AttentionS8>("attention_s8"),
      contract_for<PositionScores>("position_scores", "f32"),
      contract_for<PositionScores>("position_scores_s8", "i32"),
  };
}

}  // namespace bertcl::kernels
