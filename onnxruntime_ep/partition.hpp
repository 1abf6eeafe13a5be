// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph bertcl takes.
#pragma once
#include <string>
#include <vector>

#include "onnxruntime_ep/graph.hpp"

namespace bertcl::onnxruntime_ep {

struct Partition {
  NodeSet nodes;                     // empty: none is taken
  std::vector<std::string> reasons;  // why others are not
};

/// The whole graph where the importer takes it, else the part with most matrix multiplications that
/// can be one node: no path leaves it and comes back.
Partition choose(const Graph& graph);

}  // namespace bertcl::onnxruntime_ep
