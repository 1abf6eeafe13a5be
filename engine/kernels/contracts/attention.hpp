// SPDX-License-Identifier: Apache-2.0
// Contracts of attention over packed tokens: out = softmax(q k + mask) v, head by head. q, k and v
// may lie in one buffer, side by side. PositionScores: what is added to their scores.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// In f32 or bf16.
template <class A>
struct AttentionFloat {
  A q{}, q_stride{}, q_offset{}, k{}, k_stride{}, k_offset{}, v{}, v_stride{}, v_offset{}, out{},
      seq_offsets{}, key_mask{}, use_mask{}, heads{}, head_size{}, scale{}, block_rows{}, bias{};
  A bias_row = 0, bias_key = 1, bias_head = 0, bias_token = 0, window = 0, heads_per_key = 1;
  static constexpr Field<AttentionFloat, A> fields[] = {
      {&AttentionFloat::q, "q", "T"},
      {&AttentionFloat::q_stride, "q_stride", "int"},  // elements from row to row
      {&AttentionFloat::q_offset, "q_offset", "int"},  // of its first column
      {&AttentionFloat::k, "k", "T"},
      {&AttentionFloat::k_stride, "k_stride", "int"},  // elements from row to row
      {&AttentionFloat::k_offset, "k_offset", "int"},  // of its first column
      {&AttentionFloat::v, "v", "T"},
      {&AttentionFloat::v_stride, "v_stride", "int"},  // elements from row to row
      {&AttentionFloat::v_offset, "v_offset", "int"},  // of its first column
      {&AttentionFloat::out, "out", "T"},              // [tokens, heads * head_size]
      {&AttentionFloat::seq_offsets, "seq_offsets",
       "i32"},  // [batch + 1]: first token of each sequence
      {&AttentionFloat::key_mask, "key_mask", "u8|bool?"},  // [tokens]
      {&AttentionFloat::use_mask, "use_mask", "int"},
      {&AttentionFloat::heads, "heads", "int"},
      {&AttentionFloat::head_size, "head_size", "int"},
      {&AttentionFloat::scale, "scale", "float"},          // of q k
      {&AttentionFloat::block_rows, "block_rows", "int"},  // query rows of a work-item or a group
      {&AttentionFloat::bias, "bias", "f32?"},             // of the scores
      {&AttentionFloat::bias_row, "bias_row", "int"},      // its elements from row to row
      {&AttentionFloat::bias_key, "bias_key", "int"},      // from key to key
      {&AttentionFloat::bias_head, "bias_head", "int"},    // from head to head
      {&AttentionFloat::bias_token, "bias_token", "int"},  // per row before the sequence
      {&AttentionFloat::window, "window", "int"},          // keys on each side of a row; 0: all
      {&AttentionFloat::heads_per_key, "heads_per_key", "int"},  // query heads of a key head
  };
};

/// Sums in int32, softmax in f32.
template <class A>
struct AttentionS8 {
  A q{}, q_stride{}, q_offset{}, q_type{}, q_zero_point{}, k{}, k_stride{}, k_offset{}, k_type{},
      k_zero_point{}, v{}, v_stride{}, v_offset{}, v_type{}, v_zero_point{}, out{}, out_type{},
      out_inv_scale{}, out_zero_point{}, seq_offsets{}, key_mask{}, use_mask{}, heads{},
      head_size{}, qk_scale{}, p_inv_scale{}, p_max{}, unnormalized{}, pv_scale{},
      score_inv_scale{}, score_low{}, score_high{}, block_rows{}, bias{};
  A bias_row = 0, bias_key = 1, bias_head = 0, bias_token = 0, window = 0, heads_per_key = 1;
  static constexpr Field<AttentionS8, A> fields[] = {
      {&AttentionS8::q, "q", "u8|i8@q_type"},
      {&AttentionS8::q_stride, "q_stride", "int"},  // elements from row to row
      {&AttentionS8::q_offset, "q_offset", "int"},  // of its first column
      {&AttentionS8::q_type, "q_type", "int"},
      {&AttentionS8::q_zero_point, "q_zero_point", "int"},
      {&AttentionS8::k, "k", "u8|i8@k_type"},
      {&AttentionS8::k_stride, "k_stride", "int"},  // elements from row to row
      {&AttentionS8::k_offset, "k_offset", "int"},  // of its first column
      {&AttentionS8::k_type, "k_type", "int"},
      {&AttentionS8::k_zero_point, "k_zero_point", "int"},
      {&AttentionS8::v, "v", "u8|i8@v_type"},
      {&AttentionS8::v_stride, "v_stride", "int"},  // elements from row to row
      {&AttentionS8::v_offset, "v_offset", "int"},  // of its first column
      {&AttentionS8::v_type, "v_type", "int"},
      {&AttentionS8::v_zero_point, "v_zero_point", "int"},
      {&AttentionS8::out, "out", "f32|u8|i8@out_type"},  // [tokens, heads * head_size]
      {&AttentionS8::out_type, "out_type", "int"},
      {&AttentionS8::out_inv_scale, "out_inv_scale", "float"},
      {&AttentionS8::out_zero_point, "out_zero_point", "int"},
      {&AttentionS8::seq_offsets, "seq_offsets",
       "i32"},  // [batch + 1]: first token of each sequence
      {&AttentionS8::key_mask, "key_mask", "u8|bool?"},  // [tokens]
      {&AttentionS8::use_mask, "use_mask", "int"},
      {&AttentionS8::heads, "heads", "int"},
      {&AttentionS8::head_size, "head_size", "int"},
      {&AttentionS8::qk_scale, "qk_scale", "float"},        // of the sums of q k
      {&AttentionS8::p_inv_scale, "p_inv_scale", "float"},  // 1 / scale of the probabilities
      {&AttentionS8::p_max, "p_max", "int"},                // their largest integer
      {&AttentionS8::unnormalized, "unnormalized",
       "int"},                                        // 1: they are divided by their sum after p v
      {&AttentionS8::pv_scale, "pv_scale", "float"},  // of the sums of p v
      {&AttentionS8::score_inv_scale, "score_inv_scale",
       "float"},  // 1 / scale of quantized scores; 0: they are not
      {&AttentionS8::score_low, "score_low", "int"},  // of quantized scores
      {&AttentionS8::score_high, "score_high", "int"},
      {&AttentionS8::block_rows, "block_rows", "int"},  // query rows of a work-item or a group
      {&AttentionS8::bias, "bias", "f32?"},             // of the scores
      {&AttentionS8::bias_row, "bias_row", "int"},      // its elements from row to row
      {&AttentionS8::bias_key, "bias_key", "int"},      // from key to key
      {&AttentionS8::bias_head, "bias_head", "int"},    // from head to head
      {&AttentionS8::bias_token, "bias_token", "int"},  // per row before the sequence
      {&AttentionS8::window, "window", "int"},          // keys on each side of a row; 0: all
      {&AttentionS8::heads_per_key, "heads_per_key", "int"},  // query heads of a key head
  };
};

/// Scores of x with relative positions (position_scores in ops/operands.hpp), stored key by key.
template <class A>
struct PositionScores {
  A x{}, x_stride{}, x_offset{}, x_type{}, x_zero_point{}, positions{};
  A positions_zero_point = 0;
  A position_count{}, index{}, index_row{}, of_keys{}, addend{}, out{}, out_row{}, out_head{},
      seq_offsets{}, heads{}, head_size{}, scale{}, block_rows{}, error{};
  static constexpr Field<PositionScores, A> fields[] = {
      {&PositionScores::x, "x", "f32|u8|i8@x_type"},
      {&PositionScores::x_stride, "x_stride", "int"},  // elements from row to row
      {&PositionScores::x_offset, "x_offset", "int"},  // of its first column
      {&PositionScores::x_type, "x_type", "int"},
      {&PositionScores::x_zero_point, "x_zero_point", "int"},
      // T f32: [heads, count / 32, head_size, 32]; i32: bytes in words (position_scores_s8)
      {&PositionScores::positions, "positions", "T"},
      {&PositionScores::positions_zero_point, "positions_zero_point", "int"},  // of those bytes
      {&PositionScores::position_count, "position_count", "int"},
      {&PositionScores::index, "index", "i32"},              // [seq, seq]
      {&PositionScores::index_row, "index_row", "int"},      // its elements from row to row
      {&PositionScores::of_keys, "of_keys", "int"},          // 1: x are keys
      {&PositionScores::addend, "addend", "f32?"},           // as out
      {&PositionScores::out, "out", "f32"},                  // [heads, tokens, longest]
      {&PositionScores::out_row, "out_row", "int"},          // its elements from key to key
      {&PositionScores::out_head, "out_head", "int"},        // from head to head
      {&PositionScores::seq_offsets, "seq_offsets", "i32"},  // [batch + 1]
      {&PositionScores::heads, "heads", "int"},
      {&PositionScores::head_size, "head_size", "int"},
      {&PositionScores::scale, "scale", "float"},          // of the products
      {&PositionScores::block_rows, "block_rows", "int"},  // tokens of x of a work-item or a group
      {&PositionScores::error, "error", "i32"},            // set where an index is outside
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract attention_contracts[] = {
    row<AttentionFloat>("attention_bf16", "bf16"),
    row<AttentionFloat>("attention_f32", "f32"),
    row<AttentionS8>("attention_s8"),
    row<PositionScores>("position_scores", "f32"),
    row<PositionScores>("position_scores_s8", "i32"),
};

}  // namespace bertcl::kernels
