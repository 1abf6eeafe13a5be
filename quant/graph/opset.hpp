// SPDX-License-Identifier: Apache-2.0
// Upgrades a model to the opset that per-axis Q/DQ needs.
#pragma once
#include <cstdint>

#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// DequantizeLinear has had `axis` since opset 13.
inline constexpr std::int64_t kQuantizedOpset = 13;

/// Up to here nothing changes that a float transformer uses.
inline constexpr std::int64_t kNewestRaised = 17;

/// Rewrites the nodes whose form or meaning changes between the model's opset (9 or newer) and 13:
/// Squeeze, Unsqueeze, ReduceSum, Split (attributes become inputs), Softmax, LogSoftmax, Hardmax
/// (one axis instead of all from it on: only where it is the last), and from older sets Slice,
/// Clip, Pad, Dropout. Does nothing at opset 13 or newer. Throws Error naming the node if there is
/// no such form. Then upgrades to `wanted` if newer, at most to kNewestRaised.
void raise_opset(Model& model, const TypeOf& type_of, std::int64_t wanted = 0);

}  // namespace bertcl::quant
