// SPDX-License-Identifier: Apache-2.0
// Which inputs of which nodes get Q/DQ.
#include "quant/placement.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "bertcl/error.hpp"
#include "quant/layer_norm.hpp"

namespace bertcl::quant {
namespace {

/// Operators with products that this quantizer does not write in integers.
constexpr std::string_view kFloatProducts[] = {
    "Gemm", "Conv", "Attention", "MultiHeadAttention", "QAttention", "FusedMatMul", "FusedGemm",
    "LSTM", "GRU",  "Einsum"};

bool is_product(const onnx::NodeProto& node) {
  return node.op_type() == "MatMul" ||
         std::find(std::begin(kFloatProducts), std::end(kFloatProducts), node.op_type()) !=
             std::end(kFloatProducts);
}

/// True if another product lies on a way from the node to an output.
class ProductsBehind {
 public:
  explicit ProductsBehind(const GraphIndex& index) : index_(index) {}
  bool operator()(int node) {
    if (const auto it = known_.find(node); it != known_.end()) return it->second;
    known_[node] = false;  // a graph that is wrong may hold a cycle
    bool found = false;
    for (const auto& output : index_.node(node).output())
      for (const Use use : index_.uses(output))
        found = found || is_product(index_.node(use.node)) || (*this)(use.node);
    return known_[node] = found;
  }

 private:
  const GraphIndex& index_;
  std::map<int, bool> known_;
};

class Patterns {
 public:
  explicit Patterns(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size(), false) {}
  /// The pattern that fits the node, or null.
  const std::string* find(const onnx::NodeProto& node) {
    const std::string* found = nullptr;
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (::fnmatch(patterns_[i].c_str(), label_of(node).c_str(), 0) == 0) {
        used_[i] = true;
        found = &patterns_[i];
      }
    return found;
  }
  void check_all_used() const {
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (!used_[i])
        throw Error(
            fmt::format("no node has a name like '{}', which was to be excluded; "
                        "`bertcl inspect` lists the nodes",
                        patterns_[i]));
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
};

/// The operands of a node, or why it cannot be quantized.
std::string operands_of(const GraphIndex& index, Constants& constants, int node,
                        std::vector<Operand>& operands) {
  const auto& proto = index.node(node);
  const bool is_matmul = is_op(proto, "MatMul");
  int constant = 0;
  for (int i = 0; i < proto.input_size(); ++i) {
    const std::string& tensor = proto.input(i);
    const int producer = index.producer(tensor);
    if (producer >= 0 && is_op(index.node(producer), "DequantizeLinear"))
      return fmt::format("input '{}' is quantized already", tensor);
    Role role = Role::activation;
    if (constants.contains(tensor)) {
      role = is_matmul && i == 1 ? Role::weight : Role::constant;
      ++constant;
    }
    operands.push_back({i, tensor, role});
  }
  return constant == proto.input_size() ? "all its inputs are constant" : "";
}

}  // namespace

const char* name_of(Role role) {
  return role == Role::activation ? "activation" : role == Role::weight ? "weight" : "constant";
}

Placement place(const GraphIndex& index, Constants& constants, const PlacementOptions& options) {
  std::vector<int> residual = adds_feeding_layer_norm(index);
  ProductsBehind products_behind(index);
  Patterns patterns(options.exclude);
  Placement placement;
  for (int n = 0; n < index.node_count(); ++n) {
    const auto& node = index.node(n);
    const std::string* excluded = patterns.find(node);
    const bool matmul = is_op(node, "MatMul");
    const bool add = std::binary_search(residual.begin(), residual.end(), n);
    if (!matmul && !add && !is_product(node)) continue;
    const auto leave = [&](std::string reason) {
      placement.left.push_back({label_of(node), node.op_type(), std::move(reason)});
    };
    Site site{n, {}};
    if (excluded)
      leave(fmt::format("excluded by '{}'", *excluded));
    else if (!matmul && !add)
      leave(fmt::format("operator {} is not quantized, MatMul is", node.op_type()));
    else if (add && !options.residual)
      leave("the residual stream stays in float; option `residual` quantizes it");
    else if (matmul && !options.head && !products_behind(n))
      leave("the head stays in float");
    else if (auto reason = operands_of(index, constants, n, site.operands); !reason.empty())
      leave(std::move(reason));
    else
      placement.sites.push_back(std::move(site));
  }
  patterns.check_all_used();
  if (placement.sites.empty())
    throw Error(placement.left.empty()
                    ? std::string("nothing to quantize: the model has no MatMul")
                    : fmt::format("nothing to quantize; for example node '{}' ({}): {}",
                                  placement.left.front().node, placement.left.front().op,
                                  placement.left.front().reason));
  return placement;
}

}  // namespace bertcl::quant
