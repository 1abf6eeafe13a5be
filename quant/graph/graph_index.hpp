// SPDX-License-Identifier: Apache-2.0
// The producer and the readers of each tensor of an ONNX graph.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// Input `input` of node `node`.
struct Use {
  int node = 0;
  int input = 0;
};

/// An index of the main graph; indices of nodes are their places in the file. It is valid as long
/// as the nodes stay as they are.
class GraphIndex {
 public:
  explicit GraphIndex(const onnx::GraphProto& graph);

  const onnx::NodeProto& node(int index) const { return graph_.node(index); }
  int node_count() const { return graph_.node_size(); }
  /// The node that produces the tensor, or -1: an input or an initializer.
  int producer(const std::string& tensor) const;
  /// Inputs of nodes that read the tensor, in file order.
  const std::vector<Use>& uses(const std::string& tensor) const;
  /// True for the graph's outputs and for tensors that a graph inside a node reads.
  bool read_elsewhere(const std::string& tensor) const { return elsewhere_.contains(tensor); }
  bool is_output(const std::string& tensor) const { return outputs_.contains(tensor); }
  /// True for inputs given by the caller; not for initializers that are listed as inputs.
  bool is_input(const std::string& tensor) const { return inputs_.contains(tensor); }

 private:
  const onnx::GraphProto& graph_;
  std::map<std::string, int> producers_;
  std::map<std::string, std::vector<Use>> uses_;
  std::set<std::string> elsewhere_, inputs_, outputs_;
};

}  // namespace bertcl::quant
