// SPDX-License-Identifier: Apache-2.0
// Recognizes the Add in front of a LayerNorm, in every spelling of LayerNorm.
#pragma once
#include <vector>

#include "quant/graph/graph_index.hpp"

namespace bertcl::quant {

/// True if `tensor` is what a LayerNorm normalizes: input 0 of LayerNormalization, or of
///
///   x -> ReduceMean -> Sub(x, mean) -> d;  Pow(d, 2) or Mul(d, d) -> ReduceMean -> Add -> Sqrt
///
/// with Cast, Identity or Dropout anywhere between. It is decided by tensors, not by names or
/// lists of inputs, so that `axes` may be an attribute or an input; a ReduceMean without the rest
/// (mean pooling) is no LayerNorm.
bool feeds_layer_norm(const GraphIndex& index, const std::string& tensor);

/// The Add nodes whose result feeds a LayerNorm, in file order.
std::vector<int> adds_feeding_layer_norm(const GraphIndex& index);

}  // namespace bertcl::quant
