// SPDX-License-Identifier: Apache-2.0
// MatMuls whose activations are quantized by each run, without calibration.
#include "quant/writing/dynamic.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "quant/graph/graph_edit.hpp"

namespace bertcl::quant {
namespace {

bool reads(const Site& site, int input, Role role) {
  return std::ranges::any_of(site.operands, [&](const Operand& operand) {
    return operand.input == input && operand.role == role;
  });
}

/// Keeps the scales of rows of zeros, and of all that is next to nothing, normal numbers.
constexpr float kMinMagnitude = 1e-30f;

/// Writes one MatMul after the other.
class DynamicMatMuls {
 public:
  DynamicMatMuls(Model& model, bool per_token)
      : model_(model), index_(model.graph()), per_token_(per_token) {}

  void quantize(const std::string& y) {
    const int node = index_.producer(y);
    onnx::NodeProto& matmul = *model_.proto().mutable_graph()->mutable_node(node);
    const std::string dequantized = matmul.input(1), label = label_of(matmul);
    const onnx::NodeProto& weight = index_.node(index_.producer(dequantized));
    unread_.results.insert(dequantized);
    const Quantized& x = quantized(matmul.input(0));

    const std::string sums = model_.fresh_name(y + "_output_quantized");
    const std::string floats = model_.fresh_name(sums + "_cast_output");
    matmul.set_op_type("MatMulInteger");
    matmul.set_name(model_.fresh_name(label + "_quant"));
    matmul.set_input(0, x.integers);
    matmul.set_input(1, weight.input(0));
    matmul.add_input(x.zero_point);
    if (weight.input_size() > 2) matmul.add_input(weight.input(2));
    matmul.set_output(0, sums);

    auto& following = added_[node];
    following.push_back(make_node(model_, "Cast", sums + "_cast", {sums}, {floats}));
    set_attribute(following.back(), "to", onnx::TensorProto::FLOAT);
    // The scales of columns and rows would make a matrix: both are multiplied in one by one.
    const std::string scaled =
        model_.fresh_name(label + (per_token_ ? "_quant_scaled" : "_quant_scales_mul:0"));
    following.push_back(make_node(model_, "Mul", label + "_quant_scales_mul",
                                  {per_token_ ? floats : x.scale, weight.input(1)}, {scaled}));
    following.push_back(make_node(model_, "Mul", label + "_quant_output_scale_mul",
                                  {per_token_ ? x.scale : floats, scaled}, {y}));
  }

  void write() {
    insert_nodes(model_, std::move(added_));
    remove_unread(model_, unread_);
  }

 private:
  struct Quantized {
    std::string integers, scale, zero_point;  // zero_point empty: 0
  };

  /// Quantized following its producer when it is asked for first.
  const Quantized& quantized(const std::string& x) {
    const auto [it, added] = quantized_.try_emplace(x);
    Quantized& q = it->second;
    if (!added) return q;
    q.integers = model_.fresh_name(x + "_quantized");
    q.scale = model_.fresh_name(x + "_scale");
    auto& following = added_[index_.producer(x)];
    if (per_token_) {
      quantize_rows(x, q, following);
    } else {
      q.zero_point = model_.fresh_name(x + "_zero_point");
      following.push_back(make_node(model_, "DynamicQuantizeLinear", x + "_QuantizeLinear", {x},
                                    {q.integers, q.scale, q.zero_point}));
    }
    return q;
  }

  void quantize_rows(const std::string& x, const Quantized& q,
                     std::vector<onnx::NodeProto>& following) {
    const auto add = [&](const std::string& op, const std::vector<std::string>& inputs,
                         const std::string& output) {
      const std::string name = model_.fresh_name(x + output);
      following.push_back(make_node(model_, op, name, inputs, {name}));
      return name;
    };
    const std::string magnitude = add("Abs", {x}, "_magnitude");
    const std::string largest = model_.fresh_name(x + "_largest");
    following.push_back(
        make_row_reduction(model_, "ReduceMax", largest, magnitude, largest, axes_));
    const std::string bounded =
        add("Max", {largest, number(least_, "least_magnitude", kMinMagnitude)}, "_bounded");
    following.push_back(make_node(model_, "Div", q.scale,
                                  {bounded, number(steps_, "magnitude_steps", 127.0f)}, {q.scale}));
    const std::string rounded = add("Round", {add("Div", {x, q.scale}, "_in_steps")}, "_rounded");
    following.push_back(make_node(model_, "Cast", x + "_QuantizeLinear", {rounded}, {q.integers}));
    set_attribute(following.back(), "to", onnx::TensorProto::INT8);
  }

  /// A constant that all share.
  const std::string& number(std::string& name, const std::string& wanted, float value) {
    if (name.empty()) name = model_.add(model_.fresh_name(wanted), ir::Tensor::scalar(value));
    return name;
  }

  Model& model_;
  const GraphIndex index_;
  const bool per_token_;
  std::string axes_, least_, steps_;  // constants
  std::map<std::string, Quantized> quantized_;
  std::map<int, std::vector<onnx::NodeProto>> added_;
  Sources unread_;
};

}  // namespace

void keep_dynamic(Placement& placement, const GraphIndex& index) {
  const char* reason = "only MatMuls of an activation and a weight can be quantized dynamically";
  for (SkippedNode& node : placement.skipped)
    if (node.op == "Add") node.reason = reason;  // not that an option would quantize it
  std::erase_if(placement.sites, [&](Site& site) {
    if (reads(site, 0, Role::activation) && reads(site, 1, Role::weight)) {
      std::erase_if(site.operands,
                    [](const Operand& operand) { return operand.role == Role::activation; });
      return false;
    }
    if (std::ranges::all_of(site.operands,
                            [](const Operand& operand) { return operand.role == Role::constant; }))
      return false;
    const auto& node = index.node(site.node);
    placement.skipped.push_back({label_of(node), node.op_type(), reason});
    return true;
  });
}

std::vector<std::string> matmul_results(const Placement& placement, const GraphIndex& index) {
  std::vector<std::string> results;
  for (const Site& site : placement.sites)
    if (reads(site, 1, Role::weight)) results.push_back(index.node(site.node).output(0));
  return results;
}

void quantize_dynamically(Model& model, const std::vector<std::string>& results,
                          ActivationScales scales) {
  DynamicMatMuls matmuls(model, scales == ActivationScales::per_token);
  for (const std::string& y : results) matmuls.quantize(y);
  matmuls.write();
}

}  // namespace bertcl::quant
