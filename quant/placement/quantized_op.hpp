// SPDX-License-Identifier: Apache-2.0
// The ops of a placement, by their role in BERT.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// The role of an op in BERT; `result` is one that is quantized for all its readers.
enum class OpKind : std::uint8_t {
  other,
  qkv,
  scores,
  context,
  attention_output,
  feed_forward_in,
  feed_forward_out,
  head,
  linear,
  residual,
  result
};

/// A node whose inputs are quantized, or whose result is quantized for all its readers.
struct QuantizedOp {
  std::string node;  ///< its label
  std::string op;    ///< the operator
  OpKind kind = OpKind::other;
  std::optional<int> layer;  ///< encoder layer, from 0; empty before and after them
  bool result = false;       ///< of Placement::outputs, not of its sites
  std::size_t place = 0;     ///< index there

  /// "qkv", "attention output", ..; the operator of `other`.
  std::string kind_name() const;
};

/// The ops of every site, then of every output of `placement`.
std::vector<QuantizedOp> quantized_ops(const Placement& placement, const GraphIndex& index,
                                       const Structure& structure);

/// The sites with weights that are no MatMuls, which `measure` leaves as they are.
std::vector<SkippedNode> other_than_matmuls(const Placement& placement, const GraphIndex& index,
                                            std::string_view measure);

}  // namespace bertcl::quant
