// SPDX-License-Identifier: Apache-2.0
// Quantized weights in the form that int8 GEMMs take.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::passes {

struct Int8Weight {
  ir::Value* values = nullptr;      // i8[K, N]
  ir::Value* zero_point = nullptr;  // i8, one element or N; null where all are 0
};

/// Weights of i8 or u8 with their zero point, both constant (the zero point may be absent). u8
/// moves to i8 by subtracting 128 from both, which is exact.
Int8Weight to_int8(ir::Graph& graph, ir::Value* weight, ir::Value* zero_point);

}  // namespace bertcl::passes
