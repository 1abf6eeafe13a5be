// SPDX-License-Identifier: Apache-2.0
// The producer and the readers of each tensor of an ONNX graph.
#include "quant/graph/graph_index.hpp"

namespace bertcl::quant {

GraphIndex::GraphIndex(const onnx::GraphProto& graph) : graph_(graph) {
  for (int n = 0; n < graph.node_size(); ++n) {
    const auto& node = graph.node(n);
    for (const auto& output : node.output())
      if (!output.empty()) producers_[output] = n;
    for (int i = 0; i < node.input_size(); ++i)
      if (!node.input(i).empty()) uses_[node.input(i)].push_back({n, i});
    for_each_branch(node, [&](const onnx::GraphProto& branch) {
      for_each_graph(branch, [&](const onnx::GraphProto& g) {
        for (const auto& m : g.node()) elsewhere_.insert(m.input().begin(), m.input().end());
        for (const auto& o : g.output()) elsewhere_.insert(o.name());
      });
    });
  }
  for (const auto& input : graph.input()) inputs_.insert(input.name());
  for (const auto& initializer : graph.initializer()) inputs_.erase(initializer.name());
  for (const auto& output : graph.output()) {
    outputs_.insert(output.name());
    elsewhere_.insert(output.name());
  }
}

int GraphIndex::producer(const std::string& tensor) const {
  const auto it = producers_.find(tensor);
  return it == producers_.end() ? -1 : it->second;
}

const std::vector<Use>& GraphIndex::uses(const std::string& tensor) const {
  static const std::vector<Use> none;
  const auto it = uses_.find(tensor);
  return it == uses_.end() ? none : it->second;
}

}  // namespace bertcl::quant
