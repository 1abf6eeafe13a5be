// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of attention operators: heads and masks.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {

/// What ONNX Runtime adds to the scores of masked keys: a row without any key stays finite.
inline constexpr double masked_score = std::numeric_limits<float>::lowest();

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

}  // namespace bertcl::onnx_io
