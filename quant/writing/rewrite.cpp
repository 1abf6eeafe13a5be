// SPDX-License-Identifier: Apache-2.0
// Writes Q/DQ into an ONNX graph.
#include "quant/writing/rewrite.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quant/graph/graph_edit.hpp"

namespace bertcl::quant {
namespace {

using Key = std::pair<std::string, Role>;

/// The axis of a tensor's scales; none: it has one.
std::optional<int> axis_of(const Encoding& e) {
  if (e.role == Role::channels) return -1;
  if (e.role == Role::activation || e.constant.axis < 0) return std::nullopt;
  return e.constant.axis;
}

class Rewriter {
 public:
  Rewriter(Model& model, const GraphIndex& index, Constants& constants, const Encodings& encodings,
           const RewriteOptions& options)
      : model_(model),
        index_(index),
        constants_(constants),
        encodings_(encodings),
        options_(options) {}

  /// The operand reads quantized values. `pair` counts the pairs of a tensor; -1: the one it has.
  void quantize(int reader, const Operand& operand, int pair) {
    const Key key(operand.tensor, operand.role);
    auto it = dequantized_.find(key);
    if (pair >= 0 || it == dequantized_.end()) {
      const std::string made =
          add_pair(operand.tensor, encodings_.at(key), pair > 0 ? "_" + std::to_string(pair) : "");
      it = dequantized_.insert_or_assign(key, made).first;
      if (pair < 0 && operand.role == Role::activation && options_.all_readers)
        redirect(operand.tensor, made);
    }
    node(reader)->set_input(operand.input, it->second);
  }

  /// All who read the tensor read it quantized.
  void quantize_output(const std::string& tensor) {
    const Encoding& e = encodings_.at({tensor, Role::activation});
    if (!index_.is_output(tensor)) {
      const std::string made = add_pair(tensor, e, "");
      dequantized_[{tensor, Role::activation}] = made;
      redirect(tensor, made);
      return;
    }
    // The pair takes the name, so that whoever reads it need not change.
    const std::string before = model_.fresh_name(tensor + "_QuantizeLinear_Input");
    for (auto& output : *node(index_.producer(tensor))->mutable_output())
      if (output == tensor) output = before;
    add_pair(tensor, e, "");
    auto& nodes = added_[index_.producer(tensor)];
    nodes[nodes.size() - 2].set_input(0, before);
    nodes.back().set_output(0, tensor);
    dequantized_[{tensor, Role::activation}] = tensor;
  }

  /// Puts the new nodes after the producers of their tensors, those of constants in front.
  void insert() { insert_nodes(model_, std::move(added_)); }

 private:
  struct Named {
    std::string scale, zero_point;  // zero_point empty: 0
  };

  onnx::NodeProto* node(int n) { return model_.proto().mutable_graph()->mutable_node(n); }

  /// Shared by all pairs of a tensor.
  const Named& parameters(const std::string& tensor, const Encoding& e) {
    const auto [it, added] = parameters_.try_emplace({tensor, e.role});
    if (!added) return it->second;
    const bool one = e.role == Role::activation;
    const auto scales = one ? std::vector{e.parameters.scale} : e.constant.scales;
    const auto zero_points = one ? std::vector{e.parameters.zero_point} : e.constant.zero_points;
    const ir::Sizes shape = axis_of(e) ? ir::Sizes{std::ssize(scales)} : ir::Sizes{};
    it->second = {
        model_.add(model_.fresh_name(tensor + "_scale"), ir::Tensor::of<float>(shape, scales)), ""};
    if (needs_zero_point(tensor, e))
      // Zero points have the type of the integers.
      it->second.zero_point =
          model_.add(model_.fresh_name(tensor + "_zero_point"),
                     ir::Tensor::of<std::int32_t>(shape, zero_points).converted(e.type));
    return it->second;
  }

  /// ONNX Runtime's integer MatMul takes a vector of zero points for matrices alone, and zeros are
  /// its default. Without zero points QuantizeLinear would make u8.
  bool needs_zero_point(const std::string& tensor, const Encoding& e) const {
    const auto is_zero = [](std::int32_t zero_point) { return zero_point == 0; };
    return e.role != Role::weight || options_.float_weights ||
           e.constant.values.shape().size() <= 2 ||
           !std::ranges::all_of(e.constant.zero_points, is_zero) ||
           std::ranges::none_of(index_.uses(tensor),
                                [&](Use use) { return is_op(index_.node(use.node), "MatMul"); });
  }

  /// Adds the nodes of a tensor. Returns the name of the dequantized tensor.
  std::string add_pair(const std::string& tensor, const Encoding& e, const std::string& suffix) {
    const bool activation = e.role == Role::activation || e.role == Role::channels;
    const Named& named = parameters(tensor, e);
    if (options_.transposed_weights && e.role == Role::weight &&
        e.constant.values.shape().size() == 2)
      return add_transposed(tensor, e, named);
    const std::optional<int> axis = axis_of(e);
    std::string integers;
    int after = -1;
    if (activation || options_.float_weights) {
      after = index_.producer(tensor);
      integers = add_node(after, "QuantizeLinear", tensor, suffix, tensor, named, axis);
    } else {
      integers = model_.add(model_.fresh_name(tensor + "_quantized"), e.constant.values);
    }
    return add_node(after, "DequantizeLinear", tensor, suffix, integers, named, axis);
  }

  /// The same of a matrix that is kept the other way round.
  std::string add_transposed(const std::string& tensor, const Encoding& e, const Named& named) {
    std::optional<int> axis = axis_of(e);
    if (axis) axis = 1 - *axis;
    std::string integers;
    int after = -1;
    if (options_.float_weights) {
      const std::string source = transposed_source(tensor);
      after = index_.producer(source);
      integers = add_node(after, "QuantizeLinear", tensor, "", source, named, axis);
    } else {
      const ir::Tensor& values = e.constant.values;
      integers = model_.add(model_.fresh_name(tensor + "_quantized"), transposed(values));
    }
    const std::string turned = model_.fresh_name(tensor + "_Transpose_Output");
    const std::string dequantized =
        add_node(after, "DequantizeLinear", tensor, "", integers, named, axis);
    auto n = make_node(model_, "Transpose", tensor + "_Transpose", {dequantized}, {turned});
    set_attribute(n, "perm", {1, 0});
    added_[after].push_back(std::move(n));
    return turned;
  }

  /// The float matrix whose transpose the tensor is: what the file transposes, or a new constant.
  std::string transposed_source(const std::string& tensor) {
    if (const int n = index_.producer(tensor); n >= 0 && is_op(index_.node(n), "Transpose")) {
      const auto* perm = find_attribute(index_.node(n), "perm");
      if (!perm || perm->ints(0) == 1) return index_.node(n).input(0);
    }
    return model_.add(model_.fresh_name(tensor + "_transposed"),
                      transposed(constants_.value(tensor)));
  }

  std::string add_node(int after, const std::string& op, const std::string& tensor,
                       const std::string& suffix, const std::string& input, const Named& named,
                       std::optional<int> axis) {
    auto n = make_node(model_, op, tensor + "_" + op + suffix, {input, named.scale}, {});
    if (!named.zero_point.empty()) n.add_input(named.zero_point);
    n.add_output(model_.fresh_name(tensor + "_" + op + "_Output" + suffix));
    if (axis) set_attribute(n, "axis", *axis);
    added_[after].push_back(n);
    return n.output(0);
  }

  void redirect(const std::string& tensor, const std::string& made) {
    for (const Use use : index_.uses(tensor)) node(use.node)->set_input(use.input, made);
  }

  Model& model_;
  const GraphIndex& index_;
  Constants& constants_;
  const Encodings& encodings_;
  const RewriteOptions& options_;
  std::map<Key, std::string> dequantized_;
  std::map<Key, Named> parameters_;
  std::map<int, std::vector<onnx::NodeProto>> added_;  // by the node they follow
};

}  // namespace

void rewrite(Model& model, const Placement& placement, const Encodings& encodings,
             const GraphIndex& index, Constants& constants, const RewriteOptions& options) {
  Sources sources;
  for (const auto& [key, encoding] : encodings)
    if (encoding.role == Role::weight || encoding.role == Role::constant)
      constants.collect(key.first, sources);

  std::map<Key, int> readers;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands) ++readers[{operand.tensor, operand.role}];

  Rewriter rewriter(model, index, constants, encodings, options);
  for (const auto& tensor : placement.outputs) rewriter.quantize_output(tensor);
  std::map<Key, int> pairs;
  for (const Site& site : placement.sites)
    for (const Operand& operand : site.operands) {
      const Key key(operand.tensor, operand.role);
      const bool dedicated =
          options.dedicated_pairs && operand.role == Role::activation && readers.at(key) > 1;
      rewriter.quantize(site.node, operand, dedicated ? ++pairs[key] : -1);
    }
  rewriter.insert();
  remove_unread(model, sources);
}

}  // namespace bertcl::quant
