// SPDX-License-Identifier: Apache-2.0
// Positions of the operands of bertcl's own ops; the one place where they are numbered.
//
// An op whose result is quantized has `out_scale`; its result type says u8 or i8. add_norm and
// embed_norm give up to three results: f32, and the same quantized for one or two kinds of readers
// (the next product, the next residual sum). Scales and zero points of linear_q's result and of all
// operands and results of the norms have one element, or one for each column.
#pragma once
#include <cstddef>

namespace bertcl::passes {

/// linear(x, w, bias?) {activation}: y[.., N] = x[.., K] w[K, N] + bias
namespace linear {
enum : std::size_t { x, w, bias };
}
/// linear_q(x, w, bias?, x_scale, x_zero_point?, w_scale, out_scale?, out_zero_point?,
///          w_zero_point?) {activation}
/// x_scale and x_zero_point may be computed (DynamicQuantizeLinear), x_scale also with one element
/// for each row (quantize_rows); all else but x is constant.
/// w_scale and w_zero_point (i8) have one element or N.
namespace linear_q {
enum : std::size_t {
  x,
  w,
  bias,
  x_scale,
  x_zero_point,
  w_scale,
  out_scale,
  out_zero_point,
  w_zero_point
};
}
/// attention(q, k, v, mask?, p_scale?, p_zero_point?) {heads, scale, p_type, mask_is_length?,
/// unnormalized?,
///          offsets?, score_scale?, score_lowest?, score_factor?};
/// after pack_tokens the mask operand is followed by seq_offsets and key_mask (see
/// pack_tokens.cpp). mask_is_length = 1: as many first keys count as the mask has ones.
/// unnormalized = 1: p are powers relative to the largest, and the product with v is divided by the
/// sum of the quantized p. With score_scale the scores s = scale * q k^T are quantized,
/// clamp(round(s / score_scale), score_lowest, score_lowest + 255) * score_scale, and then
/// multiplied with score_factor.
namespace attention {
enum : std::size_t { q, k, v, mask, p_scale, p_zero_point, seq_offsets, key_mask };
}
/// attention_q(q, k, v, mask?, p_scale, q_scale, q_zero_point, ..., out_scale?, out_zero_point?)
namespace attention_q {
enum : std::size_t {
  q,
  k,
  v,
  mask,
  p_scale,
  q_scale,
  q_zero_point,
  k_scale,
  k_zero_point,
  v_scale,
  v_zero_point,
  out_scale,
  out_zero_point,
  seq_offsets,
  key_mask
};
}
/// add_norm(x, residual?, gamma, beta?, x_scale?, x_zero_point?, residual_scale?,
///          residual_zero_point?, out_scale?, out_zero_point?, second_scale?,
///          second_zero_point?) {epsilon} -> f32 [, quantized [, quantized]]
namespace add_norm {
enum : std::size_t {
  x,
  residual,
  gamma,
  beta,
  x_scale,
  x_zero_point,
  residual_scale,
  residual_zero_point,
  out_scale,
  out_zero_point,
  second_scale,
  second_zero_point
};
/// The two terms of the sum, each with its quantization.
struct Term {
  std::size_t value, scale, zero_point;
};
inline constexpr Term terms[] = {{x, x_scale, x_zero_point},
                                 {residual, residual_scale, residual_zero_point}};
}  // namespace add_norm
/// embed_norm(ids, types?, positions?, word, type?, position, gamma, beta, out_scale?,
///            out_zero_point?, second_scale?, second_zero_point?) {epsilon}
///            -> f32 [, quantized [, quantized]]
namespace embed_norm {
enum : std::size_t {
  ids,
  types,
  positions,
  word,
  type,
  position,
  gamma,
  beta,
  out_scale,
  out_zero_point,
  second_scale,
  second_zero_point
};
}
/// quantize_rows(x) {least} -> i8, or u8 with the zero point 128, and scale f32[.., 1]:
/// scale = max(|row|, least) / 127
/// pack_inputs(ids, types?, mask?, positions?) {keeps_padding?, mask_is_length?}
///   -> ids, positions, seq_offsets, key_mask [, types];
/// positions count from 0 in each sequence where they are no operand.
namespace pack_inputs {
enum : std::size_t { ids, types, mask, positions };
}

}  // namespace bertcl::passes
