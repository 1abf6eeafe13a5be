// SPDX-License-Identifier: Apache-2.0
// Pooling at the end of a model that gives a vector for each token.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/dense_layer.hpp"
#include "ir/graph.hpp"

namespace bertcl::runtime {

/// How the vectors of a sequence's tokens become one.
struct Pooling {
  /// "mean" or "max" of the tokens that the mask keeps, "cls" (the first) or "last" of them; "":
  /// the model does it itself, by an output [batch, hidden].
  std::string kind = "mean";
  bool or_own = false;       ///< a model without hidden states does it itself, whatever the kind
  std::int64_t columns = 0;  ///< the first N (Matryoshka); 0: all
  bool normalize = false;    ///< to L2 norm 1, after that
  /// The layers before both; null: none. Not called where the model pools itself.
  std::function<std::vector<ir::DenseLayer>()> dense = {};
};

/// The one output of a model with pooling, f32 [batch, columns].
inline constexpr const char* kPooledOutput = "sentence_embedding";

/// Replaces the outputs by `kPooledOutput`. A kind is applied to the hidden states [batch, seq,
/// hidden]. Throws Error naming the outputs if there are none, and where the kind is "" and the
/// model does not pool itself, and a layer whose width is not that of its vectors.
void add_pooling(ir::Graph& graph, const Pooling& pooling);

}  // namespace bertcl::runtime
