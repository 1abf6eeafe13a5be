// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph bertcl takes.
#pragma once
#include <string>
#include <vector>

#include "onnxruntime_ep/graph.hpp"

namespace bertcl::onnxruntime_ep {

/// The whole graph where the importer takes it, else the part with most matrix multiplications that
/// can be one node: no path leaves it and comes back. Empty: none is taken. Nodes with a refusal
/// are left out; those that the importer refuses get one.
NodeSet choose(Graph& graph);

/// Why nodes are not taken: "Sinh 's': is not supported by bertcl".
std::vector<std::string> reasons(const Graph& graph);

}  // namespace bertcl::onnxruntime_ep
