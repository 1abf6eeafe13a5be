// SPDX-License-Identifier: Apache-2.0
// Rules that change ranges between calibration and encoding.
#pragma once
#include <optional>

#include "quant/encoding/encode.hpp"
#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"

namespace bertcl::quant {

struct RangeOptions {
  /// Q, K and V of an attention share the union of their ranges, and so do the weights that make
  /// them where weights are quantized per tensor (QDQBERT's fuse-qkv).
  bool fuse_qkv = false;
  /// Clips GELU results that a MatMul reads at this value (QDQBERT's clip-gelu).
  std::optional<float> clip_gelu{};
  /// Ranges of weights come from their values, whatever a table of ranges says.
  bool recalibrate_weights = false;
  /// Every range is made -a .. a, also for asymmetric integers (CalibTensorRangeSymmetric).
  bool symmetric = false;
};

/// Applies the rules to `ranges`: activations by name, weights where a rule or a table gives one;
/// and to ranges of channels, each for itself. Throws Error if clip_gelu is not positive or the
/// model has no GELU, or has no attention for fuse_qkv.
void apply(const RangeOptions& options, const WeightOptions& weights, const GraphIndex& index,
           Constants& constants, const Structure& structure, Ranges& ranges,
           ChannelRanges& channels);

}  // namespace bertcl::quant
