// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of attention operators: heads and masks.
#pragma once
#include <limits>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {

/// What ONNX Runtime adds to the scores of masked keys: a row without any key stays finite.
inline constexpr double masked_score = std::numeric_limits<float>::lowest();

/// [batch, rows, heads * size] -> [batch, heads, rows, size]
ir::Value* split_heads(NodeImport& node, ir::Value* x, std::int64_t heads);

/// What com.microsoft's mask forms add to scores [batch, heads, rows, keys]: [batch] lengths, [2 *
/// batch] ends and then first keys, [batch, keys], [batch, rows, keys], where 1 keeps a key and 0
/// gives `filter`.
ir::Value* padding_mask(NodeImport& node, ir::Value* mask, const ir::Dim& batch,
                        const ir::Dim& rows, const ir::Dim& keys, double filter);

}  // namespace bertcl::onnx_io
