// SPDX-License-Identifier: Apache-2.0
// bertcl's own ops: their names, and the positions and names of their operands, with '?' after an
// optional one.
//
// An op whose result is quantized has `out_scale`; its result type says u8 or i8. Scales and zero
// points of linear_q's result and of all operands and results of the norms have one element, or one
// for each column.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "support/for_each.hpp"

namespace bertcl::ops::operands {

/// A namespace with the op's name, with the operands as enumerators and with their names, "x",
/// "bias?".
#define BERTCL_OPERANDS(name, ...)                                                   \
  namespace name {                                                                   \
  inline constexpr const char* op = #name;                                           \
  enum : std::size_t { BERTCL_FOR_EACH(BERTCL_OPERAND, __VA_ARGS__) operand_count }; \
  inline constexpr std::array<std::string_view, operand_count> names{                \
      BERTCL_FOR_EACH(BERTCL_OPERAND_NAME, __VA_ARGS__)};                            \
  }                                                                                  \
  static_assert(true)
#define BERTCL_OPERAND(operand) BERTCL_OPERAND_OF operand
#define BERTCL_OPERAND_OF(name, ...) name,
#define BERTCL_OPERAND_NAME(operand) BERTCL_OPERAND_NAME_OF operand
#define BERTCL_OPERAND_NAME_OF(name, ...) #name __VA_ARGS__,

/// y[.., N] = activation(x[.., K] w[K, N] + bias) {activation?, precision?,
/// precision_reason?, float_reason?}. precision: "fp16" or "bf16"; x and y may be in bf16.
BERTCL_OPERANDS(linear, (x), (w), (bias, "?"));

/// The same on integers {activation?}; the sums are exact. x_scale and x_zero_point may be computed
/// (DynamicQuantizeLinear), x_scale also with one element for each row (quantize_rows); all else
/// but x is constant. w_scale and w_zero_point (i8) have one element or N.
BERTCL_OPERANDS(linear_q, (x), (w), (bias, "?"), (x_scale), (x_zero_point, "?"), (w_scale),
                (out_scale, "?"), (out_zero_point, "?"), (w_zero_point, "?"));

/// softmax(scale * q k^T + mask) v, by heads {heads, scale, p_type?, mask_is_length?,
/// unnormalized?, offsets?, masked?, masks_rows?, score_scale?, score_lowest?, score_factor?,
/// window?, key_heads?, precision?, precision_reason?}, as of linear. q, k, v [batch, seq, hidden]
/// and a mask [batch, seq]; after pack_tokens [tokens, hidden], seq_offsets and key_mask (masked =
/// 1 if it is to be read). {offsets}: first columns of q, k and v in operands that are wider. bias
/// [1, heads | 1, seq, seq] is added to the scores, by the places of row and key in their sequence,
/// or the result of position_scores. {window}: keys at most that many places from the row count.
/// {key_heads}: k and v have that many, each for as many heads of q, side by side (grouped-query
/// attention, Ainslie et al., 2023). masks_rows = 1: until pack_tokens, the file computes something
/// else in rows of padding.
///
/// With p_scale, the probabilities are quantized: p_type is their integer type; the zero point is
/// 0. mask_is_length = 1: the first keys count, as many as the mask has ones. unnormalized = 1: p
/// are exponentials relative to the largest, and p v is divided by the sum of the quantized p. With
/// score_scale the scores s = scale * q k^T are quantized, clamp(round(s / score_scale),
/// score_lowest, score_lowest + 255) * score_scale, and then multiplied with score_factor.
BERTCL_OPERANDS(attention, (q), (k), (v), (mask, "?"), (p_scale, "?"), (p_zero_point, "?"),
                (seq_offsets, "?"), (key_mask, "?"), (bias, "?"));

/// The same on bytes.
BERTCL_OPERANDS(attention_q, (q), (k), (v), (mask, "?"), (p_scale), (q_scale), (q_zero_point, "?"),
                (k_scale), (k_zero_point, "?"), (v_scale), (v_zero_point, "?"), (out_scale, "?"),
                (out_zero_point, "?"), (seq_offsets, "?"), (key_mask, "?"), (bias, "?"));
static_assert(+attention_q::mask == +attention::mask);  // q, k, v and mask are the same of both

/// What relative positions add to the scores of attention (disentangled attention, He et al., 2021)
/// {heads, scale, of_keys?, offset?} -> f32 [batch, heads, seq, seq]:
///   scale * x[row] . positions[head][:, index[row][key]] + addend[row][key]
/// or with of_keys = 1, where x are keys,
///   scale * x[key] . positions[head][:, index[key][row]] + addend[row][key].
/// x [batch, seq, hidden], of which the columns from {offset} on are used; with x_scale it is u8 or
/// i8. positions is constant, [heads, size, count], with positions_scale in u8 or i8; index is i32
/// [.., seq, seq]; addend is like the result. After pack_tokens x is [tokens, hidden], and the
/// result f32 [heads, tokens, longest]: by the row of the key, and by the place of the query in its
/// sequence.
BERTCL_OPERANDS(position_scores, (x), (positions), (index), (addend, "?"), (x_scale, "?"),
                (x_zero_point, "?"), (seq_offsets, "?"), (positions_scale, "?"),
                (positions_zero_point, "?"));

/// Rotary position embedding (Su et al., 2021) of each head {heads}: x * cos + rotated x * sin,
/// where the rotated halves of a head are the second, negated, and the first. x [batch, seq,
/// hidden], or after pack_tokens [tokens, hidden] and seq_offsets; cos and sin [.., seq, size] by
/// the place of a token in its sequence, or [batch, .., seq, size] of each sequence. With
/// out_scale, of one element or one for each column, the result is quantized.
BERTCL_OPERANDS(rotary, (x), (cos), (sin), (seq_offsets, "?"), (out_scale, "?"),
                (out_zero_point, "?"));

/// activation(gate) * up {activation?}: "silu", x / (1 + exp(-x)), or none. With out_scale, of one
/// element or one for each column, the result is quantized.
BERTCL_OPERANDS(gated, (gate), (up), (out_scale, "?"), (out_zero_point, "?"));

/// LayerNorm of x + residual {epsilon, rms?, sum?} -> f32 [, sum] [, quantized [, quantized]]: f32,
/// and the same quantized for one or two kinds of readers (the next GEMM, the next residual sum).
/// rms = 1: RMSNorm. sum = 1: x + residual is a result, too, in f32.
BERTCL_OPERANDS(add_norm, (x), (residual, "?"), (gamma), (beta, "?"), (x_scale, "?"),
                (x_zero_point, "?"), (residual_scale, "?"), (residual_zero_point, "?"),
                (out_scale, "?"), (out_zero_point, "?"), (second_scale, "?"),
                (second_zero_point, "?"));
namespace add_norm {
/// The two terms of the sum, each with its quantization.
struct Term {
  std::size_t value, scale, zero_point;
};
inline constexpr Term terms[] = {{x, x_scale, x_zero_point},
                                 {residual, residual_scale, residual_zero_point}};
}  // namespace add_norm

/// LayerNorm of word[ids] + type[types] + position[positions] {epsilon}, with the results of
/// add_norm. Absent types are 0; absent positions count up along the sequence.
BERTCL_OPERANDS(embed_norm, (ids), (types, "?"), (positions, "?"), (word), (type, "?"), (position),
                (gamma), (beta, "?"), (out_scale, "?"), (out_zero_point, "?"), (second_scale, "?"),
                (second_zero_point, "?"));

/// One row for each sequence of x {kind, columns?, normalize?, masked?}: over the tokens that the
/// mask keeps their mean or largest value, or the first (cls) or the last of them; 0 where it keeps
/// none. columns: how many are kept, the first ones; normalize: divided by their L2 norm, or by
/// 1e-12 where that is larger. x [batch, seq, hidden] with a mask [batch, seq]; after pack_tokens
/// [tokens, hidden], seq_offsets and key_mask (masked = 1 if it is to be read). x [batch, hidden]:
/// each row is a sequence.
BERTCL_OPERANDS(pool, (x), (mask, "?"), (seq_offsets, "?"), (key_mask, "?"));
namespace pool {
/// Values of `kind`; a kernel takes the place in this list.
inline constexpr std::string_view kinds[] = {"mean", "max", "cls", "last"};
inline constexpr double min_norm = 1e-12;
}  // namespace pool

/// Rows quantized by their own largest magnitude {least} -> i8, or u8 with the zero point 128, and
/// scale f32[.., 1] = max(|row|, least) / 127.
BERTCL_OPERANDS(quantize_rows, (x));

/// Shows a value to calibration {name}; no result.
BERTCL_OPERANDS(observe, (x));

/// Values that the host fills during upload {padding_reader?, mask_is_length?, rows?}
///   -> ids, positions, seq_offsets, key_mask [, types];
/// positions count from 0 in each sequence if they are not an operand. Without ids {rows =
/// "[batch, seq]"} are the sizes, and every row counts.
BERTCL_OPERANDS(pack_inputs, (ids, "?"), (types, "?"), (mask, "?"), (positions, "?"));

/// Sizes of this run as integers {values = "[batch, 12*seq]"}, of the result's type and shape.
BERTCL_OPERANDS(sizes);

/// Rows of [batch, seq, ..] as [tokens, ..].
BERTCL_OPERANDS(pack, (padded), (seq_offsets));

/// Rows of [tokens, ..] as [batch, seq, ..], with zeros for padding. Those of [tokens, n] also as
/// two results [batch, seq, k] and [batch, seq, n - k].
BERTCL_OPERANDS(unpack, (packed), (seq_offsets));

}  // namespace bertcl::ops::operands
