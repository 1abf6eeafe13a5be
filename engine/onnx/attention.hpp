// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of attention operators: heads, masks and rotation.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {

/// What ONNX Runtime adds to the scores of masked keys: a row without any key stays finite.
inline constexpr double kMaskedScore = std::numeric_limits<float>::lowest();

/// [batch, rows, heads * size] -> [batch, heads, rows, size]
ir::Value* split_heads(NodeImport& node, ir::Value* x, std::int64_t heads);

/// com.microsoft's forms of a mask.
enum class MaskForm : std::uint8_t {
  ends,             ///< [batch]: keys before these are kept
  ends_and_starts,  ///< [2 * batch]: ends, then first keys
  keys,             ///< [batch, keys]: 1 keeps a key, 0 does not
  rows_and_keys,    ///< [batch, rows, keys], likewise
};

/// The form of a mask of that shape for scores [batch, heads, rows, keys]; empty for any other.
std::optional<MaskForm> mask_form(const ir::Shape& mask, const ir::Dim& batch, const ir::Dim& rows,
                                  const ir::Dim& keys);

/// What a mask in one of these forms adds to scores [batch, heads, rows, keys]: `filter` for keys
/// that it does not keep.
ir::Value* padding_mask(NodeImport& node, ir::Value* mask, const ir::Dim& batch,
                        const ir::Dim& rows, const ir::Dim& keys, double filter);

/// Queries, keys and values of all heads and what is added to their scores.
struct AttentionInputs {
  ir::Value* query;                     // [batch, heads, rows, size]
  ir::Value* key;                       // [batch, heads, keys, size]
  ir::Value* value;                     // [batch, heads, keys, value size]
  std::vector<ir::Value*> score_terms;  // each broadcasts to [batch, heads, rows, keys]
  double scale = 0;                     // 0: 1 / sqrt(size)
  double softcap = 0;                   // scores become softcap * tanh(scores / softcap)
  bool zero_empty_rows = false;         // a row whose keys are all masked, by -inf, gives 0
};

/// softmax(softcap(scale * Q K') + terms) V: [batch, rows, heads * value size].
ir::Value* emit_attention(NodeImport& node, const AttentionInputs& h);

/// Row i sees keys 0 to i: `term` for these (null: 0), `filter` for others. ONNX Runtime puts
/// `kMaskedScore` in the place of what a mask gives: a row without any key that is kept does not
/// see later ones.
ir::Value* emit_causal_mask(NodeImport& node, const ir::Dim& rows, const ir::Dim& keys,
                            ir::Value* term = nullptr, double filter = kMaskedScore);

/// Keys or values [batch, fewer heads, keys, size], each head as often as queries share it.
ir::Value* repeat_heads(NodeImport& node, ir::Value* x, const ir::Dim& heads);

/// True where operand i holds keys or values of earlier tokens, if only in some run.
bool has_past(NodeImport& node, std::size_t i);

/// Throws if one of the operands is there.
void refuse_operands(NodeImport& node, std::size_t from, std::size_t to, const char* what);

/// The operands that hold cosines and sines, by rows of `positions`, which may be null.
struct RotaryTables {
  std::size_t cos, sin;
  ir::Value* positions = nullptr;
  std::int64_t width = 0;  // columns that are rotated; 0: all
  bool interleaved = false;
};
/// x [batch, heads, seq, size], or with `rows_first` [batch, seq, heads, size], rotated.
ir::Value* emit_rotary(NodeImport& node, ir::Value* x, const RotaryTables& tables, bool rows_first);

}  // namespace bertcl::onnx_io
