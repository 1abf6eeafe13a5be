// SPDX-License-Identifier: Apache-2.0
// The parts of a transformer, as nodes and tensors of the file.
#include "quant/graph/structure.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/input_role.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"

namespace bertcl::quant {
namespace {

bool is_any(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

using Test = std::function<bool(const ir::Node&)>;

/// The nearest node towards the inputs that `wanted` accepts, through nodes that `passes` accepts;
/// null if there is none.
const ir::Node* search_back(const ir::Value* from, const Test& wanted, const Test& passes) {
  std::vector<const ir::Value*> values{from};
  std::unordered_set<const ir::Node*> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ir::Node* node = values[i] ? values[i]->producer : nullptr;
    if (!node || !seen.insert(node).second) continue;
    if (wanted(*node)) return node;
    if (passes(*node)) values.insert(values.end(), node->inputs.begin(), node->inputs.end());
  }
  return nullptr;
}

/// Constants are folded, weights may still stand after DequantizeLinear.
bool is_constant(const ir::Value* v) {
  return v->is_constant() || (v->producer && v->producer->op == "DequantizeLinear" &&
                              v->producer->inputs[0]->is_constant());
}

bool multiplies_activations(const ir::Node& n) {
  return n.op == "MatMul" && !is_constant(n.inputs[0]) && !is_constant(n.inputs[1]);
}

/// The MatMul that multiplies the probabilities, or null.
const ir::Node* context_of(const ir::Value* probabilities) {
  std::vector<const ir::Value*> values{probabilities};
  std::unordered_set<const ir::Node*> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ir::Value* value = values[i];
    if (const ir::Node* where = passes::without_nan(value)) values.push_back(where->output());
    for (const ir::Node* user : value->users) {
      if (user->inputs[0] != value || !seen.insert(user).second) continue;
      if (user->op == "MatMul") return user;
      if (user->op == "Mul" || passes::is_quantization(*user)) values.push_back(user->output());
    }
  }
  return nullptr;
}

/// The way from a compiled graph back to the nodes of the file.
class Recognizer {
 public:
  Recognizer(const ir::Graph& graph, const GraphIndex& index) : graph_(graph), index_(index) {}

  void add_to(Structure& structure) const {
    for (const auto& node : graph_.nodes()) {
      if (node->op == "Gelu") add_gelu(node->output(), structure);
      if (is_any(node->op, {"LayerNormalization", "RMSNormalization"})) add_norm(*node, structure);
      if (node->op == "MatMul") add_bias(*node, structure);
      if (node->op == "Softmax") add_attention(*node, structure);
    }
    std::ranges::sort(structure.residual_adds);
    const auto last = std::unique(structure.residual_adds.begin(), structure.residual_adds.end());
    structure.residual_adds.erase(last, structure.residual_adds.end());
    std::ranges::sort(structure.attentions,
                      [](const auto& a, const auto& b) { return a.softmax < b.softmax; });
  }

 private:
  /// The node of the file that makes the value, if it is such an operator; else -1.
  int node_of(const ir::Value* v, std::string_view op) const {
    const int node = index_.producer(v->name);
    return node >= 0 && is_op(index_.node(node), op) ? node : -1;
  }

  /// With what smoothing makes of it: the result times factors of its channels.
  static void add_gelu(const ir::Value* result, Structure& structure) {
    structure.gelus.insert(result->name);
    for (const ir::Node* user : result->users)
      if (user->op == "Mul" && is_constant(user->inputs[user->inputs[0] == result ? 1 : 0]))
        structure.gelus.insert(user->output()->name);
  }

  void add_norm(const ir::Node& norm, Structure& structure) const {
    if (index_.producer(norm.output()->name) >= 0)
      structure.layer_norms.push_back(norm.output()->name);
    structure.normalized.emplace(norm.inputs[0]->name, norm.output()->name);
    if (const int add = node_of(norm.inputs[0], "Add"); add >= 0)
      structure.residual_adds.push_back(add);
  }

  void add_bias(const ir::Node& matmul, Structure& structure) const {
    const ir::Value* result = matmul.output();
    if (!graph_.used_once(result) || result->users.empty()) return;
    const ir::Node& add = *result->users.front();
    if (add.op != "Add" || !is_constant(add.inputs[add.inputs[0] == result ? 1 : 0])) return;
    const auto& uses = index_.uses(result->name);
    if (const int node = node_of(add.output(), "Add");
        node >= 0 && uses.size() == 1 && uses.front().node == node)
      structure.biased[result->name] = add.output()->name;
  }

  void add_attention(const ir::Node& softmax, Structure& structure) const {
    const ir::Node* where = passes::without_nan(softmax.output());
    const int without_nan = where ? node_of(where->output(), "Where") : -1;
    if (without_nan >= 0)
      structure.without_nan.emplace(where->output()->name, softmax.output()->name);
    const ir::Node* context = context_of(softmax.output());
    const ir::Node* scores =
        search_back(softmax.inputs[0], multiplies_activations, [](const ir::Node& n) {
          return passes::is_quantization(n) ||
                 is_any(n.op, {"Add", "Sub", "Mul", "Div", "Where", "Max", "Clip"});
        });
    if (!context || !scores) return;
    AttentionParts parts;
    parts.softmax = node_of(softmax.output(), "Softmax");
    parts.probabilities = without_nan >= 0 ? without_nan : parts.softmax;
    parts.scores = node_of(scores->output(), "MatMul");
    parts.context = node_of(context->output(), "MatMul");
    if (parts.softmax < 0 || parts.scores < 0 || parts.context < 0) return;
    parts.q = index_.node(parts.scores).input(0);
    parts.k = index_.node(parts.scores).input(1);
    parts.v = index_.node(parts.context).input(1);
    for (const ir::Value* operand : scores->inputs) add_scaled(*operand, structure);
    parts.q_linear = linear_before(scores->inputs[0]);
    parts.k_linear = linear_before(scores->inputs[1]);
    parts.v_linear = linear_before(context->inputs[1]);
    structure.attentions.push_back(std::move(parts));
  }

  /// By the file's node: passes may have replaced what it scales.
  void add_scaled(const ir::Value& operand, Structure& structure) const {
    const auto scaled = operand.producer ? passes::scaled(*operand.producer) : std::nullopt;
    if (!scaled || scaled->factor <= 0.0) return;
    const int node = node_of(&operand, operand.producer->op);
    const int input = operand.producer->inputs[0] == scaled->x ? 0 : 1;
    if (node >= 0) structure.scaled.emplace(operand.name, index_.node(node).input(input));
  }

  /// The MatMul with a weight that makes the heads, or -1.
  int linear_before(const ir::Value* heads) const {
    const ir::Node* linear = search_back(
        heads, [](const ir::Node& n) { return n.op == "MatMul" && is_constant(n.inputs[1]); },
        [](const ir::Node& n) {
          return is_any(n.op, {"Reshape", "Transpose", "Split", "Slice", "Squeeze", "Unsqueeze",
                               "Gather", "Add", "Mul", "Div"});
        });
    return linear ? node_of(linear->output(), "MatMul") : -1;
  }

  const ir::Graph& graph_;
  const GraphIndex& index_;
};

/// The ranges of masks do not apply to the scores.
std::set<std::string> masks_of(const ir::Graph& graph) {
  struct Origin {
    bool mask = false, other = false;
  };
  std::unordered_map<const ir::Value*, Origin> origins;
  std::set<std::string> masks;
  const auto add = [&](const ir::Value* value, Origin origin) {
    origins[value] = origin;
    if (origin.mask && !origin.other) masks.insert(value->name);
  };
  for (const ir::Value* input : graph.inputs()) {
    const bool mask = ir::role_of_input(input->name) == ir::InputRole::mask;
    add(input, {mask, !mask});
  }
  for (const auto& node : graph.nodes()) {
    Origin origin;
    for (const ir::Value* input : node->inputs)
      if (const auto it = origins.find(input); it != origins.end() && node->op != "Shape") {
        origin.mask = origin.mask || it->second.mask;
        origin.other = origin.other || it->second.other;
      }
    for (const ir::Value* output : node->outputs) add(output, origin);
  }
  return masks;
}

}  // namespace

bool Structure::is_residual(int node) const {
  return std::ranges::binary_search(residual_adds, node);
}

const std::string& Structure::with_bias(const std::string& matmul) const {
  const auto it = biased.find(matmul);
  return it == biased.end() ? matmul : it->second;
}

Structure recognize(ir::Graph graph, const GraphIndex& index) {
  Structure structure;
  structure.masks = masks_of(graph);
  for (const passes::Pass& pass : passes::pipeline_up_to("find_gelu")) pass.run(graph);
  Recognizer(graph, index).add_to(structure);
  return structure;
}

bool moves_elements(const onnx::NodeProto& node) {
  return node.input_size() > 0 && node.domain().empty() &&
         is_any(node.op_type(),
                {"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Split", "Slice"});
}

}  // namespace bertcl::quant
