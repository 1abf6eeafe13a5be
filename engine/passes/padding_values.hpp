// SPDX-License-Identifier: Apache-2.0
// What values that are made of the mask hold for padding.
#pragma once
#include <map>
#include <vector>

#include "ir/graph.hpp"
#include "ir/tensor.hpp"
#include "passes/token_axes.hpp"

namespace bertcl::passes {

/// What is known about all padding elements.
struct PaddingValue {
  bool zero = false, nonzero = false;
  bool low = false, high = false;  // large numbers, used as minus infinity; as infinity
  bool finite = false;
};

/// Finds that by running what makes a value with masks of all kinds.
class PaddingValues {
 public:
  /// `mask`: [batch, seq], of whose elements and of sizes all values are made; may be null.
  PaddingValues(const ir::Graph& graph, const ir::Value* mask) : graph_(graph), mask_(mask) {}

  /// The value of the elements of `v` whose tokens along `axis` are padding, or of all without an
  /// axis; nothing where that cannot be told.
  PaddingValue of(ir::Value* v, const TokenAxis* axis);

 private:
  struct Trial {
    ir::Tensor mask, result;
    ir::Bindings sizes;
  };
  const std::vector<Trial>& trials_of(ir::Value* v);

  const ir::Graph& graph_;
  const ir::Value* mask_;
  std::map<const ir::Value*, std::vector<Trial>> trials_;
};

}  // namespace bertcl::passes
