// SPDX-License-Identifier: Apache-2.0
// The ops of a placement, by their role in BERT.
#include "quant/placement/quantized_op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "quant/graph/matmuls.hpp"

namespace bertcl::quant {
namespace {

class Kinds {
 public:
  Kinds(const GraphIndex& index, const Structure& structure)
      : index_(index), structure_(structure), matmuls_(index) {
    std::map<int, int> softmaxes;
    for (std::size_t a = 0; a < structure.attentions.size(); ++a) {
      const AttentionParts& parts = structure.attentions[a];
      const auto layer = static_cast<int>(a);
      softmaxes[parts.softmax] = layer;
      for (const int linear : {parts.q_linear, parts.k_linear, parts.v_linear})
        if (linear >= 0) known_[linear] = {OpKind::qkv, layer};
      known_[parts.scores] = {OpKind::scores, layer};
      known_[parts.context] = {OpKind::context, layer};
    }
    // Nodes stand after those that they read.
    layers_.assign(static_cast<std::size_t>(index.node_count()), std::nullopt);
    for (int n = 0; n < index.node_count(); ++n) {
      auto& layer = layers_[n];
      for (const auto& input : index.node(n).input())
        if (const int producer = index.producer(input); producer >= 0)
          layer = std::max(layer, layers_[producer]);
      if (const auto it = softmaxes.find(n); it != softmaxes.end()) layer = it->second;
    }
    for (int n = 0; n < index.node_count(); ++n) classify(n);
  }

  void describe(int node, QuantizedOp& op) const {
    op.node = label_of(index_.node(node));
    op.op = index_.node(node).op_type();
    const auto it = known_.find(node);
    op.kind = it == known_.end() ? OpKind::other : it->second.kind;
    op.layer = it == known_.end() ? layers_[node] : it->second.layer;
  }

 private:
  struct Kind {
    OpKind kind;
    std::optional<int> layer;
  };

  void classify(int n) {
    const auto& node = index_.node(n);
    const auto layer = layers_[n];
    if (structure_.is_residual(n)) known_[n] = {OpKind::residual, layer};
    if (!is_matmul(node) || known_.contains(n)) return;
    const int before = matmul_before(index_, node.input(0));
    const auto known = known_.find(before);
    if (known != known_.end() && known->second.kind == OpKind::context) {
      known_[n] = {OpKind::attention_output, layer};
    } else if (structure_.gelus.contains(node.input(0))) {
      if (known != known_.end()) known->second.kind = OpKind::feed_forward_in;
      known_[n] = {OpKind::feed_forward_out, layer};
    } else if (!matmuls_.is_followed(n)) {
      known_[n] = {OpKind::head, std::nullopt};
    } else {
      known_[n] = {OpKind::linear, layer};
    }
  }

  const GraphIndex& index_;
  const Structure& structure_;
  MatMuls matmuls_;
  std::vector<std::optional<int>> layers_;  // by node: of the last Softmax in front of it
  std::map<int, Kind> known_;
};

}  // namespace

std::string QuantizedOp::kind_name() const {
  static constexpr std::array names = {"",
                                       "qkv",
                                       "scores",
                                       "context",
                                       "attention output",
                                       "feed-forward in",
                                       "feed-forward out",
                                       "head",
                                       "linear",
                                       "residual",
                                       "result"};
  static_assert(names.size() == static_cast<std::size_t>(OpKind::result) + 1);
  return kind == OpKind::other ? op : names[static_cast<std::size_t>(kind)];
}

std::vector<QuantizedOp> quantized_ops(const Placement& placement, const GraphIndex& index,
                                       const Structure& structure) {
  const Kinds kinds(index, structure);
  std::vector<QuantizedOp> ops;
  for (std::size_t i = 0; i < placement.sites.size(); ++i) {
    QuantizedOp& op = ops.emplace_back();
    kinds.describe(placement.sites[i].node, op);
    op.place = i;
  }
  for (std::size_t i = 0; i < placement.outputs.size(); ++i) {
    QuantizedOp& op = ops.emplace_back();
    kinds.describe(index.producer(placement.outputs[i]), op);
    op.kind = OpKind::result;
    op.result = true;
    op.place = i;
  }
  return ops;
}

std::vector<SkippedNode> other_than_matmuls(const Placement& placement, const GraphIndex& index,
                                            std::string_view measure) {
  std::vector<SkippedNode> nodes;
  for (const Site& site : placement.sites) {
    const auto& node = index.node(site.node);
    if (site.has_weight() && !is_op(node, "MatMul"))
      nodes.push_back({label_of(node), node.op_type(),
                       fmt::format("{} is for MatMul, not for {}", measure, node.op_type())});
  }
  return nodes;
}

}  // namespace bertcl::quant
