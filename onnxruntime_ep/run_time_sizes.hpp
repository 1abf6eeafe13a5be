// SPDX-License-Identifier: Apache-2.0
// What the engine takes for granted of extents that only a run knows, and ONNX Runtime does not.
#pragma once
#include <map>
#include <string>

#include "ir/graph.hpp"

namespace bertcl::onnxruntime_ep {

/// Throws ir::NodeError with the nodes that would fail in runs of sizes that ONNX Runtime takes:
/// - Slices whose end may be beyond a free axis, where ONNX gives what there is;
/// - operators that may broadcast an extent that is 1 in a run: the engine takes two extents for
///   equal unless one is known to be 1.
/// `unknown`: symbols of extents that ONNX Runtime does not know, and the values that have them.
void check_run_time_sizes(const ir::Graph& graph,
                          const std::map<std::string, std::string>& unknown);

}  // namespace bertcl::onnxruntime_ep
