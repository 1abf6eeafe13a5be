// SPDX-License-Identifier: Apache-2.0
// The outcome for each node of the ONNX file.
#include "passes/node_statuses.hpp"

#include <algorithm>
#include <set>

#include "ops/operands.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

std::set<std::string, std::less<>> names_in(const ir::Graph& graph) {
  std::set<std::string, std::less<>> names;
  for (const auto& node : graph.nodes()) names.insert(node->sources.begin(), node->sources.end());
  return names;
}

/// What a node computes, by what its operands are made of.
class Kinds {
 public:
  Status of(const ir::Node& node) {
    bool any = false, all_constant = true, all_known = true;
    for (const ir::Value* in : node.inputs) {
      if (!in) continue;
      any = true;
      const bool constant = in->is_constant() || is(in, Status::constant);
      all_constant = all_constant && constant;
      all_known = all_known && (constant || is(in, Status::size));
    }
    Status status = Status::absorbed;
    if (node.op == "Shape" || node.op == "Size" || node.op == sizes::op)
      status = Status::size;
    else if (any && all_constant)
      status = Status::constant;
    else if (any && all_known)
      status = Status::size;
    kinds_[&node] = status;
    return status;
  }

 private:
  bool is(const ir::Value* v, Status status) const {
    const auto it = kinds_.find(v->producer);
    return v->producer && it != kinds_.end() && it->second == status;
  }
  std::unordered_map<const ir::Node*, Status> kinds_;
};

}  // namespace

NodeStatuses::NodeStatuses(const ir::Graph& graph) {
  Kinds kinds;
  for (const auto& node : graph.nodes()) {
    const Status status = kinds.of(*node);
    for (const std::string& source : node->sources) {
      // Of a fused operator that was taken apart, the part that computes most counts.
      const auto [it, added] = status_if_gone_.emplace(source, status);
      it->second = std::max(it->second, status);
    }
  }
  for (const ir::SourceNode& source : graph.source_nodes) {
    NodeStatus node{source.name, source.op, Status::computed, ""};
    if (!status_if_gone_.contains(source.name)) {
      node.status = source.op == "Constant" ? Status::constant : Status::absorbed;
      node.pass = "import";
    }
    nodes_.push_back(std::move(node));
  }
}

void NodeStatuses::after(const std::string& pass, const ir::Graph& graph) {
  const auto present = names_in(graph);
  for (NodeStatus& node : nodes_) {
    if (node.pass == "import") continue;
    if (present.contains(node.name)) {
      node.status = Status::computed;
      node.pass.clear();
    } else if (node.status == Status::computed) {
      node.status = status_if_gone_.at(node.name);
      node.pass = pass;
    }
  }
}

}  // namespace bertcl::passes
