// SPDX-License-Identifier: Apache-2.0
// The ops of a placement, by their role in BERT.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// A node whose inputs are quantized, or whose result is quantized for all its readers.
struct QuantizedOp {
  std::string node;  ///< its label
  std::string op;    ///< the operator
  /// "qkv", "scores", "context", "attention output", "feed-forward in", "feed-forward out", "head",
  /// "linear", "residual", "result", or the operator where it is none of these.
  std::string kind;
  std::optional<int> layer;  ///< encoder layer, from 0; empty before and after them
  bool result = false;       ///< of Placement::outputs, not of its sites
  std::size_t place = 0;     ///< index there
};

/// The ops of every site, then of every output of `placement`.
std::vector<QuantizedOp> quantized_ops(const Placement& placement, const GraphIndex& index,
                                       const Structure& structure);

/// The sites with weights that are no MatMuls, which `measure` leaves as they are.
std::vector<SkippedNode> other_than_matmuls(const Placement& placement, const GraphIndex& index,
                                            std::string_view measure);

}  // namespace bertcl::quant
