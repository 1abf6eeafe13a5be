// SPDX-License-Identifier: Apache-2.0
// Writes FusedMatMul as Transpose, MatMul and Mul.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "quant/graph/expand_fused.hpp"
#include "quant/graph/graph_edit.hpp"

namespace bertcl::quant {
namespace {

bool is_fused_matmul(const onnx::NodeProto& node) {
  return node.domain() == "com.microsoft" && node.op_type() == "FusedMatMul";
}

/// The name before its fusion: /layer/MatMul of /layer/MatMul/MatMulScaleFusion/.
std::string name_before(std::string name) {
  while (name.ends_with("Fusion/") || name.ends_with("Fusion")) {
    const auto slash = name.find_last_of('/', name.size() - 2);
    if (slash == std::string::npos || slash == 0) break;
    name.resize(slash);
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  }
  return name;
}

/// The nodes in place of one, of operands with these ranks.
std::vector<onnx::NodeProto> expanded(Model& model, const onnx::NodeProto& node,
                                      const std::size_t (&ranks)[2]) {
  std::vector<onnx::NodeProto> nodes;
  const std::string name = name_before(label_of(node));
  const auto emit = [&](const std::string& op, const std::string& wanted,
                        const std::vector<std::string>& inputs) {
    nodes.push_back(make_node(model, op, wanted, inputs));
    return nodes.back().output(0);
  };
  std::string operands[2];
  for (int i = 0; i < 2; ++i) {
    operands[i] = node.input(i);
    if (int_attribute(node, i == 0 ? "transA" : "transB", 0) == 0) continue;
    std::vector<std::int64_t> perm(ranks[i]);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 2], perm.back());
    operands[i] = emit("Transpose", name + "_Transpose", {operands[i]});
    set_attribute(nodes.back(), "perm", perm);
  }
  const std::string matmul = emit("MatMul", name, {operands[0], operands[1]});
  if (const float alpha = float_attribute(node, "alpha", 1.0f); alpha != 1.0f)
    emit("Mul", name + "_Mul",
         {matmul, model.add(model.fresh_name(name + "_alpha"), ir::Tensor::scalar(alpha))});
  nodes.back().set_output(0, node.output(0));
  return nodes;
}

std::set<std::string> results_of(const Model& model) {
  std::set<std::string> results;
  for (const onnx::NodeProto& node : model.graph().node())
    results.insert(node.output().begin(), node.output().end());
  return results;
}

}  // namespace

Expanded expand_fused_matmul(Model& model) {
  Expanded done;
  std::optional<ir::Graph> types;
  std::map<int, std::vector<onnx::NodeProto>> replaced;
  for (int n = 0; n < model.graph().node_size(); ++n) {
    const onnx::NodeProto& node = model.graph().node(n);
    if (!is_fused_matmul(node)) continue;
    if (!types) types = model.import();
    std::size_t ranks[2] = {};
    bool known = true;
    for (int i = 0; i < 2; ++i) {
      const ir::Value* operand = types->find_value(node.input(i));
      known = known && operand && operand->type.dtype == ir::DType::f32;
      if (operand) ranks[i] = operand->type.shape.size();
      // A vector has nothing to transpose.
      known = known && (ranks[i] > 1 || int_attribute(node, i == 0 ? "transA" : "transB", 0) == 0);
    }
    if (known) {
      replaced[n] = expanded(model, node, ranks);
      ++done.count;
    } else {
      done.unexpanded.emplace(label_of(node), "its operands are not f32 matrices");
    }
  }
  replace_nodes(model, std::move(replaced));
  return done;
}

Expanded expand_fused(Model& model) {
  const std::set<std::string> before = results_of(model);
  Expanded done = expand_attention(model);
  Expanded more = expand_fused_matmul(model);
  done.count += more.count;
  done.unexpanded.merge(more.unexpanded);
  if (done.count > 0) done.tensors = results_of(model);
  for (const std::string& tensor : before) done.tensors.erase(tensor);
  return done;
}

}  // namespace bertcl::quant
