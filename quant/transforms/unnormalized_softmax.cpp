// SPDX-License-Identifier: Apache-2.0
// Moves the normalization of a quantized Softmax after the MatMul that reads it.
#include "quant/transforms/unnormalized_softmax.hpp"

#include <map>
#include <utility>
#include <vector>

#include "quant/graph/graph_edit.hpp"

namespace bertcl::quant {
namespace {

bool is_over_last_axis(const onnx::NodeProto& softmax, const RankOf& rank_of) {
  const std::int64_t axis = int_attribute(softmax, "axis", -1);
  if (axis == -1) return true;
  const auto rank = rank_of(softmax.output(0));
  return rank && axis + 1 == static_cast<std::int64_t>(*rank);
}

/// Writes the nodes of one Softmax and of its MatMul.
class Unnormalizer {
 public:
  explicit Unnormalizer(Model& model) : model_(model), index_(model.graph()) {}

  void unnormalize(const std::string& result) {
    const int softmax = index_.producer(result);
    const int quantize = only_reader(result);
    const std::string& dequantized = output_of(only_reader(output_of(quantize)));
    const int reader = only_reader(dequantized);

    const std::string scores = index_.node(softmax).input(0);
    const std::string largest = model_.fresh_name(result + "_largest");
    const std::string shifted = model_.fresh_name(result + "_shifted");
    const std::string powers = model_.fresh_name(result + "_powers");
    replaced_[softmax] = {reduction("ReduceMax", result, scores, largest),
                          node("Sub", result, {scores, largest}, shifted),
                          node("Exp", result, {shifted}, powers)};
    mutable_node(quantize).set_input(0, powers);

    const std::string y = output_of(reader);
    const std::string sum = model_.fresh_name(y + "_sum");
    const std::string undivided = model_.fresh_name(y + "_undivided");
    onnx::NodeProto matmul = index_.node(reader);
    matmul.set_output(0, undivided);
    replaced_[reader] = {std::move(matmul), reduction("ReduceSum", y, dequantized, sum),
                         node("Div", y, {undivided, sum}, y)};
  }

  void write() { replace_nodes(model_, std::move(replaced_)); }

 private:
  int only_reader(const std::string& tensor) const { return index_.uses(tensor).front().node; }
  const std::string& output_of(int n) const { return index_.node(n).output(0); }
  onnx::NodeProto& mutable_node(int n) { return *model_.proto().mutable_graph()->mutable_node(n); }

  onnx::NodeProto node(const std::string& op, const std::string& name,
                       const std::vector<std::string>& inputs, const std::string& output) {
    return make_node(model_, op, name + "_" + op, inputs, {output});
  }

  onnx::NodeProto reduction(const std::string& op, const std::string& name,
                            const std::string& input, const std::string& output) {
    return make_row_reduction(model_, op, name + "_" + op, input, output, axes_);
  }

  Model& model_;
  const GraphIndex index_;
  std::map<int, std::vector<onnx::NodeProto>> replaced_;
  std::string axes_;
};

}  // namespace

std::set<std::string> unnormalizable_softmaxes(const Placement& placement, const GraphIndex& index,
                                               const RankOf& rank_of) {
  std::set<std::string> results;
  for (const Site& site : placement.sites) {
    if (!is_op(index.node(site.node), "MatMul")) continue;
    for (const Operand& operand : site.operands) {
      if (operand.input != 0 || operand.role != Role::activation) continue;
      const int producer = index.producer(operand.tensor);
      if (producer >= 0 && is_op(index.node(producer), "Softmax") &&
          is_over_last_axis(index.node(producer), rank_of) &&
          index.uses(operand.tensor).size() == 1 && !index.read_elsewhere(operand.tensor))
        results.insert(operand.tensor);
    }
  }
  return results;
}

void unnormalize_softmax(Model& model, const std::set<std::string>& results) {
  Unnormalizer unnormalizer(model);
  for (const std::string& result : results) unnormalizer.unnormalize(result);
  unnormalizer.write();
}

}  // namespace bertcl::quant
