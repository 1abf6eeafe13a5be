// SPDX-License-Identifier: Apache-2.0
// The outcome for each node of the ONNX file, which shows in a report that none is lost.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::passes {

enum class Status {
  computed,  // in the compiled graph: part of a launch
  constant,  // its operands are constant: evaluated while compiling
  size,      // it computes sizes of tensors from sizes: known from the shapes of the inputs
  absorbed,  // a pass has put what it does into other nodes, or it does nothing
};

struct NodeStatus {
  std::string name, op;  // as the file has them
  Status status = Status::computed;
  std::string pass;  // after which it was gone; "import" if no node was created for it
};

/// Tracks node names through the compiler.
class NodeStatuses {
 public:
  /// `graph` as it was imported.
  explicit NodeStatuses(const ir::Graph& graph);
  /// Records what a pass has removed.
  void after(const std::string& pass, const ir::Graph& graph);
  /// One entry for each node of the file, in its order.
  std::vector<NodeStatus> result() const { return nodes_; }

 private:
  std::vector<NodeStatus> nodes_;
  std::unordered_map<std::string, Status> status_if_gone_;
};

}  // namespace bertcl::passes
