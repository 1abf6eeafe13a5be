// SPDX-License-Identifier: Apache-2.0
// Writes Q/DQ into an ONNX graph.
#include "quant/rewrite.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quant/graph_edit.hpp"

namespace bertcl::quant {
namespace {

class Rewriter {
 public:
  Rewriter(Model& model, const GraphIndex& index, const RewriteOptions& options)
      : model_(model), index_(index), options_(options) {}

  /// Adds the nodes of a tensor. Returns the name of the dequantized tensor.
  std::string quantize(const std::string& tensor, const Encoding& e) {
    const bool activation = e.role == Role::activation;
    // Zero points have the type of the integers.
    const ir::DType type = activation ? options_.activations.type : e.constant.values.dtype();
    const auto& c = e.constant;
    const bool per_channel = !activation && c.axis >= 0;
    const auto scales = activation ? std::vector{e.parameters.scale} : c.scales;
    const auto zero_points = activation ? std::vector{e.parameters.zero_point} : c.zero_points;
    const ir::Sizes shape =
        per_channel ? ir::Sizes{static_cast<std::int64_t>(scales.size())} : ir::Sizes{};
    const std::string scale =
        model_.add(model_.fresh_name(tensor + "_scale"), ir::Tensor::of<float>(shape, scales));
    const std::string zero_point =
        model_.add(model_.fresh_name(tensor + "_zero_point"),
                   ir::Tensor::of<std::int32_t>(shape, zero_points).converted(type));
    std::string integers;
    int after = -1;
    if (activation || options_.float_weights) {
      after = index_.producer(tensor);
      integers = node(after, "QuantizeLinear", tensor, tensor, scale, zero_point,
                      per_channel ? c.axis : -1);
    } else {
      integers = model_.add(model_.fresh_name(tensor + "_quantized"), c.values);
    }
    return node(after, "DequantizeLinear", tensor, integers, scale, zero_point,
                per_channel ? c.axis : -1);
  }

  /// Puts the new nodes behind the producers of their tensors, those of constants in front.
  void insert() { insert_nodes(model_, std::move(added_)); }

 private:
  std::string node(int after, const std::string& op, const std::string& tensor,
                   const std::string& input, const std::string& scale,
                   const std::string& zero_point, int axis) {
    onnx::NodeProto n;
    n.set_op_type(op);
    n.set_name(model_.fresh_name(tensor + "_" + op));
    n.add_input(input);
    n.add_input(scale);
    n.add_input(zero_point);
    n.add_output(model_.fresh_name(tensor + "_" + op + "_Output"));
    if (axis >= 0) {
      auto* a = n.add_attribute();
      a->set_name("axis");
      a->set_type(onnx::AttributeProto::INT);
      a->set_i(axis);
    }
    added_[after].push_back(n);
    return n.output(0);
  }

  Model& model_;
  const GraphIndex& index_;
  const RewriteOptions& options_;
  std::map<int, std::vector<onnx::NodeProto>> added_;  // by the node they follow
};

}  // namespace

void rewrite(Model& model, const Placement& placement, const Encodings& encodings,
             const GraphIndex& index, const Constants& constants, const RewriteOptions& options) {
  std::set<int> chain;
  std::set<std::string> initializers, outputs;
  for (const auto& [key, encoding] : encodings)
    if (encoding.role != Role::activation) constants.collect(key.first, chain, initializers);
  for (const int n : chain)
    outputs.insert(index.node(n).output().begin(), index.node(n).output().end());

  Rewriter rewriter(model, index, options);
  std::map<std::pair<std::string, Role>, std::string> dequantized;
  for (const Site& site : placement.sites) {
    auto& node = *model.proto().mutable_graph()->mutable_node(site.node);
    for (const Operand& operand : site.operands) {
      const auto key = std::pair(operand.tensor, operand.role);
      auto it = dequantized.find(key);
      if (it == dequantized.end())
        it = dequantized.emplace(key, rewriter.quantize(operand.tensor, encodings.at(key))).first;
      node.set_input(operand.input, it->second);
    }
  }
  rewriter.insert();
  remove_unread(model, outputs, initializers);
}

}  // namespace bertcl::quant
