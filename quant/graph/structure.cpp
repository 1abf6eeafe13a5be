// SPDX-License-Identifier: Apache-2.0
// Recognizes the parts of a BERT in an ONNX graph, by tensors and operators and not by names.
#include "quant/graph/structure.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "ir/input_role.hpp"

namespace bertcl::quant {
namespace {

bool is_any(const onnx::NodeProto& node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return is_op(node, op); });
}

/// The only node that reads the tensor, or -1.
int only_reader(const GraphIndex& index, const std::string& tensor) {
  const auto& uses = index.uses(tensor);
  return uses.size() == 1 && !index.read_elsewhere(tensor) ? uses.front().node : -1;
}

bool moves(const onnx::NodeProto& n) {
  return is_any(n, {"Identity", "Cast", "Dropout", "Reshape", "Transpose", "Split", "Slice",
                    "Squeeze", "Unsqueeze", "Gather", "Add", "Mul", "Div"});
}

int linear_before(const GraphIndex& index, Constants& constants, const std::string& tensor) {
  return search_back(
      index, tensor,
      [&](const auto& n) {
        return is_op(n, "MatMul") && n.input_size() == 2 && constants.contains(n.input(1));
      },
      moves);
}

/// The node that multiplies the probabilities, or -1.
int context_of(const GraphIndex& index, const std::string& probabilities) {
  std::vector<std::string> tensors{probabilities};
  std::set<int> seen;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (const Use use : index.uses(std::string(tensors[i]))) {
      const auto& node = index.node(use.node);
      if (use.input != 0 || node.output_size() == 0 || !seen.insert(use.node).second) continue;
      if (is_op(node, "MatMul")) return use.node;
      if (is_any(node,
                 {"Identity", "Cast", "Dropout", "Mul", "QuantizeLinear", "DequantizeLinear"}))
        tensors.push_back(node.output(0));
    }
  return -1;
}

std::string module_path(const std::string& name) {
  std::string path = name.starts_with('/') ? name.substr(1) : name;
  std::replace(path.begin(), path.end(), '/', '.');
  const auto last = path.rfind('.');
  return last == std::string::npos ? "" : path.substr(0, last);
}

/// "....query.bias", also after Casts and Transposes.
std::string module_of_constant(const GraphIndex& index, std::string tensor) {
  for (int steps = 0; steps < 4; ++steps) {
    if (tensor.ends_with(".weight") || tensor.ends_with(".bias")) return module_path(tensor);
    const int producer = index.producer(tensor);
    if (producer < 0 || index.node(producer).input_size() == 0 ||
        !is_any(index.node(producer),
                {"Identity", "Cast", "Transpose", "DequantizeLinear", "QuantizeLinear"}))
      break;
    tensor = index.node(producer).input(0);
  }
  return "";
}

}  // namespace

std::vector<AttentionParts> find_attentions(const GraphIndex& index, Constants& constants) {
  std::vector<AttentionParts> all;
  for (int n = 0; n < index.node_count(); ++n) {
    const auto& softmax = index.node(n);
    if (!is_op(softmax, "Softmax") || softmax.input_size() == 0 || softmax.output_size() == 0)
      continue;
    AttentionParts parts;
    parts.softmax = n;
    parts.context = context_of(index, softmax.output(0));
    parts.scores = search_back(
        index, softmax.input(0),
        [&](const auto& node) {
          return is_op(node, "MatMul") && node.input_size() == 2 &&
                 !constants.contains(node.input(0)) && !constants.contains(node.input(1));
        },
        [](const auto& node) {
          return is_any(node, {"Identity", "Cast", "Add", "Sub", "Mul", "Div", "Where", "Max",
                               "Clip", "QuantizeLinear", "DequantizeLinear"});
        });
    if (parts.scores < 0 || parts.context < 0 || index.node(parts.context).input_size() < 2)
      continue;
    parts.q = index.node(parts.scores).input(0);
    parts.k = index.node(parts.scores).input(1);
    parts.v = index.node(parts.context).input(1);
    parts.q_linear = linear_before(index, constants, parts.q);
    parts.k_linear = linear_before(index, constants, parts.k);
    parts.v_linear = linear_before(index, constants, parts.v);
    all.push_back(std::move(parts));
  }
  return all;
}

bool moves_elements(const onnx::NodeProto& node) {
  return node.input_size() > 0 && is_any(node, {"Identity", "Reshape", "Transpose", "Squeeze",
                                                "Unsqueeze", "Split", "Slice"});
}

bool is_gelu(const GraphIndex& index, const std::string& tensor) {
  const int producer = index.producer(tensor);
  if (producer < 0) return false;
  const std::string& op = index.node(producer).op_type();
  if (op == "Gelu" || op == "FastGelu" || op == "BiasGelu" || op == "QuickGelu") return true;
  if (!is_op(index.node(producer), "Mul")) return false;
  const int curve = search_back(
      index, tensor,
      [](const auto& n) {
        return is_any(n, {"Erf", "Tanh"});
      },
      [](const auto& n) {
        return is_any(n, {"Mul", "Add"});
      });
  if (curve < 0) return false;
  // 1 + curve: what is added is no other activation.
  const auto& uses = index.uses(index.node(curve).output(0));
  return std::any_of(uses.begin(), uses.end(),
                     [&](Use use) { return is_op(index.node(use.node), "Add"); });
}

std::vector<std::string> layer_norm_outputs(const GraphIndex& index, Constants& constants) {
  std::vector<std::string> outputs;
  const auto is_scaled = [&](int node) {
    const auto& n = index.node(node);
    return is_any(n, {"Mul", "Add"}) && n.input_size() == 2 && n.output_size() > 0 &&
           (constants.contains(n.input(0)) || constants.contains(n.input(1)));
  };
  for (int n = 0; n < index.node_count(); ++n) {
    const auto& node = index.node(n);
    if (node.output_size() == 0) continue;
    if (is_op(node, "LayerNormalization")) outputs.push_back(node.output(0));
    if (!is_op(node, "Sqrt")) continue;
    // Sqrt -> Div -> Mul(gamma) -> Add(beta), or with the Reciprocal multiplied.
    int at = only_reader(index, node.output(0));
    if (at >= 0 && is_op(index.node(at), "Reciprocal") && index.node(at).output_size() > 0)
      at = only_reader(index, index.node(at).output(0));
    if (at < 0 || !is_any(index.node(at), {"Div", "Mul"}) || index.node(at).output_size() == 0)
      continue;
    for (int next = only_reader(index, index.node(at).output(0)); next >= 0 && is_scaled(next);
         next = only_reader(index, index.node(at).output(0))) {
      at = next;
      if (is_op(index.node(at), "Add")) break;
    }
    if (is_op(index.node(at), "Add")) outputs.push_back(index.node(at).output(0));
  }
  return outputs;
}

std::string with_bias(const GraphIndex& index, Constants& constants, int product) {
  const std::string& result = index.node(product).output(0);
  const int reader = only_reader(index, result);
  if (reader < 0 || !is_op(index.node(reader), "Add") || index.node(reader).output_size() == 0)
    return result;
  const auto& add = index.node(reader);
  for (const auto& input : add.input())
    if (input != result && constants.contains(input)) return add.output(0);
  return result;
}

bool is_mask(const GraphIndex& index, const std::string& tensor) {
  bool mask = false, other = false;
  std::set<int> seen;
  std::vector<std::string> tensors{tensor};
  for (std::size_t i = 0; i < tensors.size() && !other; ++i) {
    const std::string name = tensors[i];
    const int producer = index.producer(name);
    if (producer < 0) {
      if (!index.is_input(name)) continue;
      (ir::role_of_input(name) == ir::InputRole::mask ? mask : other) = true;
    } else if (seen.insert(producer).second && !is_op(index.node(producer), "Shape")) {
      const auto& inputs = index.node(producer).input();
      tensors.insert(tensors.end(), inputs.begin(), inputs.end());
    }
  }
  return mask && !other;
}

std::string module_of(const GraphIndex& index, int node) {
  const auto& n = index.node(node);
  if (n.name().find('/') != std::string::npos) return module_path(n.name());
  for (const auto& input : n.input())
    if (auto module = module_of_constant(index, input); !module.empty()) return module;
  if (n.output_size() == 0) return module_path(n.name());
  for (const Use use : index.uses(n.output(0))) {
    const auto& reader = index.node(use.node);
    // The bias tells the MatMul's module, gamma that of the LayerNorm's parent.
    for (const auto& input : reader.input())
      if (auto module = module_of_constant(index, input); !module.empty())
        return is_op(reader, "LayerNormalization") ? module_path(module) : module;
  }
  return module_path(n.name());
}

}  // namespace bertcl::quant
