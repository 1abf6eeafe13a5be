// SPDX-License-Identifier: Apache-2.0
// Writes operators that ONNX Runtime's optimizers have fused, and that hold MatMuls, as plain ones.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// What became of such operators.
struct Expanded {
  std::int64_t count = 0;                         ///< nodes that were replaced
  std::set<std::string> tensors;                  ///< results of the nodes in their place
  std::map<std::string, std::string> unexpanded;  ///< label of any other, and why it stays as it is
};

/// expand_attention() and expand_fused_matmul().
Expanded expand_fused(Model& model);

/// Replaces Attention and MultiHeadAttention of com.microsoft, and ONNX's own Attention, in the
/// main graph by the nodes of an encoder that nobody has optimized, so that each of its MatMuls can
/// be quantized by itself:
///
///   x, weights, bias -> Attention -> y
///   becomes
///   x -> MatMul(weights of queries) -> Add -> Reshape -> Transpose -> q   (k and v likewise)
///   MatMul(q, k') -> Mul(scale) -> Add(mask) -> Softmax -> MatMul(v) -> Transpose -> Reshape -> y
///
/// which is the same except for rounding, and in ONNX Runtime for rows of ONNX's Attention without
/// any key, which it makes 0 in that operator. A mask becomes 0 for the keys that it keeps and
/// mask_filter_value for all others, once for all nodes that share it. Nodes have the names that
/// torch's exporter gives them, as far as names tell the module: MODULE/query/MatMul,
/// MODULE/MatMul. Nodes with past keys, several results that are read, a soft cap, keys and values
/// that come divided into heads, weights that are not constants, or operands that are not f32 stay
/// as they are. Throws Error as Model::import() if there is any such operator.
Expanded expand_attention(Model& model);

/// Likewise FusedMatMul of com.microsoft:
///
///   FusedMatMul(a, b) -> y
///   becomes
///   a, b [-> Transpose of the last two axes] -> MatMul [-> Mul(alpha)] -> y
Expanded expand_fused_matmul(Model& model);

}  // namespace bertcl::quant
