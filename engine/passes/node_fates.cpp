// SPDX-License-Identifier: Apache-2.0
// What became of each node of the ONNX file.
#include "passes/node_fates.hpp"

#include <algorithm>
#include <set>

namespace bertcl::passes {
namespace {

std::set<std::string, std::less<>> names_in(const ir::Graph& graph) {
  std::set<std::string, std::less<>> names;
  for (const auto& node : graph.nodes()) names.insert(node->sources.begin(), node->sources.end());
  return names;
}

/// What a node computes, by what its operands are made of.
class Kinds {
 public:
  Fate of(const ir::Node& node) {
    bool any = false, all_constant = true, all_known = true;
    for (const ir::Value* in : node.inputs) {
      if (!in) continue;
      any = true;
      const bool constant = in->is_constant() || is(in, Fate::constant);
      all_constant = all_constant && constant;
      all_known = all_known && (constant || is(in, Fate::size));
    }
    Fate fate = Fate::absorbed;
    if (node.op == "Shape" || node.op == "Size" || node.op == "sizes")
      fate = Fate::size;
    else if (any && all_constant)
      fate = Fate::constant;
    else if (any && all_known)
      fate = Fate::size;
    kinds_[&node] = fate;
    return fate;
  }

 private:
  bool is(const ir::Value* v, Fate fate) const {
    const auto it = kinds_.find(v->producer);
    return v->producer && it != kinds_.end() && it->second == fate;
  }
  std::unordered_map<const ir::Node*, Fate> kinds_;
};

}  // namespace

NodeFates::NodeFates(const ir::Graph& graph) {
  Kinds kinds;
  for (const auto& node : graph.nodes()) {
    const Fate fate = kinds.of(*node);
    for (const std::string& source : node->sources) {
      // Of a fused operator that was taken apart, the part that computes most counts.
      const auto [it, added] = fate_if_gone_.emplace(source, fate);
      it->second = std::max(it->second, fate);
    }
  }
  for (const ir::SourceNode& source : graph.source_nodes) {
    NodeFate node{source.name, source.op, Fate::computed, ""};
    if (!fate_if_gone_.contains(source.name)) {
      node.fate = source.op == "Constant" ? Fate::constant : Fate::absorbed;
      node.pass = "import";
    }
    nodes_.push_back(std::move(node));
  }
}

void NodeFates::after(const std::string& pass, const ir::Graph& graph) {
  const auto present = names_in(graph);
  for (NodeFate& node : nodes_) {
    if (node.pass == "import") continue;
    if (present.contains(node.name)) {
      node.fate = Fate::computed;
      node.pass.clear();
    } else if (node.fate == Fate::computed) {
      node.fate = fate_if_gone_.at(node.name);
      node.pass = pass;
    }
  }
}

}  // namespace bertcl::passes
