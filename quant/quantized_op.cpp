// SPDX-License-Identifier: Apache-2.0
// The ops of a placement, by what they are in a BERT.
#include "quant/quantized_op.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "quant/layer_norm.hpp"
#include "quant/structure.hpp"

namespace bertcl::quant {
namespace {

bool is_product(const onnx::NodeProto& node) {
  return is_op(node, "MatMul") || is_op(node, "Gemm");
}

/// The nearest product towards the inputs of a graph, or -1.
int product_before(const GraphIndex& index, const std::string& tensor) {
  std::set<int> seen;
  std::vector<std::string> tensors{tensor};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const int producer = index.producer(std::string(tensors[i]));
    if (producer < 0 || !seen.insert(producer).second) continue;
    const auto& node = index.node(producer);
    if (is_product(node)) return producer;
    tensors.insert(tensors.end(), node.input().begin(), node.input().end());
  }
  return -1;
}

bool has_product_behind(const GraphIndex& index, int node) {
  std::set<int> seen{node};
  std::vector<int> nodes{node};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const auto& output : index.node(nodes[i]).output())
      for (const Use use : index.uses(output)) {
        if (is_product(index.node(use.node))) return true;
        if (seen.insert(use.node).second) nodes.push_back(use.node);
      }
  return false;
}

class Kinds {
 public:
  Kinds(const GraphIndex& index, Constants& constants) : index_(index) {
    const auto attentions = find_attentions(index, constants);
    std::map<int, int> softmaxes;
    for (std::size_t a = 0; a < attentions.size(); ++a) {
      const AttentionParts& parts = attentions[a];
      const auto layer = static_cast<int>(a);
      softmaxes[parts.softmax] = layer;
      for (const int linear : {parts.q_linear, parts.k_linear, parts.v_linear})
        if (linear >= 0) known_[linear] = {"qkv", layer};
      known_[parts.scores] = {"scores", layer};
      known_[parts.context] = {"context", layer};
    }
    // Nodes stand behind those that they read.
    layers_.assign(static_cast<std::size_t>(index.node_count()), std::nullopt);
    for (int n = 0; n < index.node_count(); ++n) {
      auto& layer = layers_[static_cast<std::size_t>(n)];
      for (const auto& input : index.node(n).input())
        if (const int producer = index.producer(input); producer >= 0)
          layer = std::max(layer, layers_[static_cast<std::size_t>(producer)]);
      if (const auto it = softmaxes.find(n); it != softmaxes.end()) layer = it->second;
    }
    residual_ = adds_feeding_layer_norm(index);
    for (int n = 0; n < index.node_count(); ++n) classify(n);
  }

  void describe(int node, QuantizedOp& op) const {
    op.node = label_of(index_.node(node));
    op.op = index_.node(node).op_type();
    const auto it = known_.find(node);
    op.kind = it == known_.end() ? op.op : it->second.name;
    op.layer = it == known_.end() ? layers_[static_cast<std::size_t>(node)] : it->second.layer;
  }

 private:
  struct Kind {
    std::string name;
    std::optional<int> layer;
  };

  void classify(int n) {
    const auto& node = index_.node(n);
    const auto layer = layers_[static_cast<std::size_t>(n)];
    if (std::binary_search(residual_.begin(), residual_.end(), n)) known_[n] = {"residual", layer};
    if (!is_product(node) || known_.contains(n)) return;
    const int before = product_before(index_, node.input(0));
    const auto known = known_.find(before);
    if (known != known_.end() && known->second.name == "context") {
      known_[n] = {"attention output", layer};
    } else if (is_gelu(index_, node.input(0))) {
      if (known != known_.end()) known->second.name = "feed-forward in";
      known_[n] = {"feed-forward out", layer};
    } else if (!has_product_behind(index_, n)) {
      known_[n] = {"head", std::nullopt};
    } else {
      known_[n] = {"product", layer};
    }
  }

  const GraphIndex& index_;
  std::vector<int> residual_;
  std::vector<std::optional<int>> layers_;  // by node: of the last Softmax in front of it
  std::map<int, Kind> known_;
};

}  // namespace

std::vector<QuantizedOp> quantized_ops(const Placement& placement, const GraphIndex& index,
                                       Constants& constants) {
  const Kinds kinds(index, constants);
  std::vector<QuantizedOp> ops;
  for (std::size_t i = 0; i < placement.sites.size(); ++i) {
    QuantizedOp& op = ops.emplace_back();
    kinds.describe(placement.sites[i].node, op);
    op.place = i;
  }
  for (std::size_t i = 0; i < placement.outputs.size(); ++i) {
    QuantizedOp& op = ops.emplace_back();
    kinds.describe(index.producer(placement.outputs[i]), op);
    op.kind = "result";
    op.result = true;
    op.place = i;
  }
  return ops;
}

}  // namespace bertcl::quant
