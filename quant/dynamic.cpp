// SPDX-License-Identifier: Apache-2.0
// Products whose activations are quantized by the values of each run, without calibration.
#include "quant/dynamic.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "quant/graph_edit.hpp"

namespace bertcl::quant {
namespace {

bool reads(const Site& site, int input, Role role) {
  return std::any_of(site.operands.begin(), site.operands.end(), [&](const Operand& operand) {
    return operand.input == input && operand.role == role;
  });
}

/// Writes one product after the other.
class DynamicProducts {
 public:
  explicit DynamicProducts(Model& model) : model_(model), index_(model.graph()) {}

  void quantize(const std::string& y) {
    const int product = index_.producer(y);
    onnx::NodeProto& matmul = *model_.proto().mutable_graph()->mutable_node(product);
    const std::string dequantized = matmul.input(1), label = label_of(matmul);
    const onnx::NodeProto& weight = index_.node(index_.producer(dequantized));
    unread_.insert(dequantized);
    const Quantized& x = quantized(matmul.input(0));

    const std::string sums = model_.fresh_name(y + "_output_quantized");
    const std::string floats = model_.fresh_name(sums + "_cast_output");
    matmul.set_op_type("MatMulInteger");
    matmul.set_name(model_.fresh_name(label + "_quant"));
    matmul.set_input(0, x.integers);
    matmul.set_input(1, weight.input(0));
    matmul.add_input(x.zero_point);
    matmul.add_input(weight.input(2));
    matmul.set_output(0, sums);

    auto& behind = added_[product];
    behind.push_back(make_node(model_, "Cast", sums + "_cast", {sums}, {floats}));
    set_attribute(behind.back(), "to", onnx::TensorProto::FLOAT);
    const std::string scale = model_.fresh_name(label + "_quant_scales_mul:0");
    behind.push_back(
        make_node(model_, "Mul", label + "_quant_scales_mul", {x.scale, weight.input(1)}, {scale}));
    behind.push_back(
        make_node(model_, "Mul", label + "_quant_output_scale_mul", {floats, scale}, {y}));
  }

  void write() {
    insert_nodes(model_, std::move(added_));
    remove_unread(model_, unread_, {});
  }

 private:
  struct Quantized {
    std::string integers, scale, zero_point;
  };

  /// Quantized behind its producer when it is asked for first.
  const Quantized& quantized(const std::string& x) {
    const auto [it, added] = quantized_.try_emplace(x);
    Quantized& q = it->second;
    if (!added) return q;
    q = {model_.fresh_name(x + "_quantized"), model_.fresh_name(x + "_scale"),
         model_.fresh_name(x + "_zero_point")};
    added_[index_.producer(x)].push_back(make_node(model_, "DynamicQuantizeLinear",
                                                   x + "_QuantizeLinear", {x},
                                                   {q.integers, q.scale, q.zero_point}));
    return q;
  }

  Model& model_;
  const GraphIndex index_;
  std::map<std::string, Quantized> quantized_;
  std::map<int, std::vector<onnx::NodeProto>> added_;
  std::set<std::string> unread_;
};

}  // namespace

void keep_dynamic(Placement& placement, const GraphIndex& index) {
  std::erase_if(placement.sites, [&](Site& site) {
    if (reads(site, 0, Role::activation) && reads(site, 1, Role::weight)) {
      std::erase_if(site.operands,
                    [](const Operand& operand) { return operand.role == Role::activation; });
      return false;
    }
    if (std::all_of(site.operands.begin(), site.operands.end(),
                    [](const Operand& operand) { return operand.role == Role::constant; }))
      return false;
    const auto& node = index.node(site.node);
    placement.left.push_back({label_of(node), node.op_type(),
                              "products of an activation and a weight are quantized dynamically"});
    return true;
  });
}

std::set<std::string> product_results(const Placement& placement, const GraphIndex& index) {
  std::set<std::string> results;
  for (const Site& site : placement.sites)
    if (reads(site, 1, Role::weight)) results.insert(index.node(site.node).output(0));
  return results;
}

void quantize_dynamically(Model& model, const std::set<std::string>& results) {
  DynamicProducts products(model);
  for (const std::string& y : results) products.quantize(y);
  products.write();
}

}  // namespace bertcl::quant
