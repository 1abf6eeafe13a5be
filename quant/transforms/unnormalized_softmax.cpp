// SPDX-License-Identifier: Apache-2.0
// Moves the normalization of a quantized Softmax after the MatMul that reads it.
#include "quant/transforms/unnormalized_softmax.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "quant/graph/graph_edit.hpp"

namespace bertcl::quant {
namespace {

bool is_over_last_axis(const onnx::NodeProto& softmax, const TypeOf& type_of) {
  const std::int64_t axis = int_attribute(softmax, "axis", -1);
  if (axis == -1) return true;
  const ir::Type* type = type_of(softmax.output(0));
  return type && axis + 1 == std::ssize(type->shape);
}

/// The Softmax whose result, or Where after it, gives the tensor; -1 if none does.
int softmax_of(const std::string& tensor, const GraphIndex& index, const Structure& structure) {
  const auto it = structure.without_nan.find(tensor);
  const int node = index.producer(it == structure.without_nan.end() ? tensor : it->second);
  return node >= 0 && is_op(index.node(node), "Softmax") ? node : -1;
}

/// True if nothing but the one operand reads the probabilities, except for Where before it.
bool reads_alone(const std::string& operand, const std::string& probabilities,
                 const Placement& placement, const GraphIndex& index) {
  const auto has_one_reader = [&](const std::string& tensor) {
    return index.uses(tensor).size() == 1 && !index.read_elsewhere(tensor);
  };
  if (!has_one_reader(operand)) return false;
  if (operand == probabilities) return true;
  const int where = index.producer(operand);
  return !index.read_elsewhere(probabilities) &&
         std::ranges::find(placement.outputs, probabilities) == placement.outputs.end() &&
         std::ranges::all_of(index.uses(probabilities), [&](Use use) {
           const std::string& result = index.node(use.node).output(0);
           return use.node == where ||
                  (has_one_reader(result) && index.uses(result).front().node == where);
         });
}

/// Writes the nodes of one Softmax and of its MatMul.
class Unnormalizer {
 public:
  explicit Unnormalizer(Model& model) : model_(model), index_(model.graph()) {}

  void unnormalize(const std::string& result, const Structure& structure) {
    const int softmax = softmax_of(result, index_, structure);
    const std::string probabilities = output_of(softmax);
    const std::string& dequantized = output_of(only_reader(output_of(only_reader(result))));
    const int reader = only_reader(dequantized);

    const std::string scores = index_.node(softmax).input(0);
    const std::string largest = model_.fresh_name(result + "_largest");
    const std::string shifted = model_.fresh_name(result + "_shifted");
    // Written models have this suffix: another would change their bytes.
    const std::string exponentials = model_.fresh_name(result + "_powers");
    replaced_[softmax] = {reduction("ReduceMax", result, scores, largest),
                          node("Sub", result, {scores, largest}, shifted),
                          node("Exp", result, {shifted}, exponentials)};
    for (const Use use : index_.uses(probabilities))
      model_.proto().mutable_graph()->mutable_node(use.node)->set_input(use.input, exponentials);

    const std::string y = output_of(reader);
    std::string sum = model_.fresh_name(y + "_sum");
    const std::string undivided = model_.fresh_name(y + "_undivided");
    onnx::NodeProto matmul = index_.node(reader);
    matmul.set_output(0, undivided);
    auto& nodes = replaced_[reader];
    nodes = {std::move(matmul), reduction("ReduceSum", y, dequantized, sum)};
    if (result != probabilities) {  // its sum may be 0
      const std::string divisor = model_.fresh_name(y + "_divisor");
      nodes.push_back(node("Max", y, {sum, least_divisor()}, divisor));
      sum = divisor;
    }
    nodes.push_back(node("Div", y, {undivided, sum}, y));
  }

  void write() { replace_nodes(model_, std::move(replaced_)); }

 private:
  int only_reader(const std::string& tensor) const { return index_.uses(tensor).front().node; }
  const std::string& output_of(int n) const { return index_.node(n).output(0); }

  onnx::NodeProto node(const std::string& op, const std::string& name,
                       const std::vector<std::string>& inputs, const std::string& output) {
    return make_node(model_, op, name + "_" + op, inputs, {output});
  }

  onnx::NodeProto reduction(const std::string& op, const std::string& name,
                            const std::string& input, const std::string& output) {
    return make_row_reduction(model_, op, name + "_" + op, input, output, axes_);
  }

  const std::string& least_divisor() {
    if (least_divisor_.empty())
      least_divisor_ =
          model_.add(model_.fresh_name("least_divisor"), ir::Tensor::scalar<float>(1e-30f));
    return least_divisor_;
  }

  Model& model_;
  const GraphIndex index_;
  std::map<int, std::vector<onnx::NodeProto>> replaced_;
  std::string axes_, least_divisor_;
};

}  // namespace

std::set<std::string> unnormalizable_softmaxes(const Placement& placement, const GraphIndex& index,
                                               const Structure& structure, const TypeOf& type_of) {
  std::set<std::string> results;
  for (const Site& site : placement.sites) {
    if (!is_op(index.node(site.node), "MatMul")) continue;
    for (const Operand& operand : site.operands) {
      if (operand.input != 0 || operand.role != Role::activation) continue;
      const int softmax = softmax_of(operand.tensor, index, structure);
      if (softmax >= 0 && is_over_last_axis(index.node(softmax), type_of) &&
          reads_alone(operand.tensor, index.node(softmax).output(0), placement, index))
        results.insert(operand.tensor);
    }
  }
  return results;
}

std::vector<SkippedNode> normalized_softmaxes(const std::set<std::string>& unnormalized,
                                              const GraphIndex& index, const Structure& structure,
                                              const TypeOf& type_of) {
  std::set<int> done;
  for (const std::string& result : unnormalized) done.insert(softmax_of(result, index, structure));
  std::vector<SkippedNode> nodes;
  for (int n = 0; n < index.node_count(); ++n)
    if (const auto& node = index.node(n); is_op(node, "Softmax") && !done.contains(n))
      nodes.push_back(
          {label_of(node), node.op_type(),
           is_over_last_axis(node, type_of)
               ? "its result is not read as the first input of one quantized MatMul alone"
               : "it is not over the last axis"});
  if (nodes.empty() && done.empty()) nodes.push_back({"the model", "Softmax", "it has no Softmax"});
  return nodes;
}

void unnormalize_softmax(Model& model, const std::set<std::string>& results,
                         const Structure& structure) {
  Unnormalizer unnormalizer(model);
  for (const std::string& result : results) unnormalizer.unnormalize(result, structure);
  unnormalizer.write();
}

}  // namespace bertcl::quant
