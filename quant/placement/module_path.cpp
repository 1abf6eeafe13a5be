// SPDX-License-Identifier: Apache-2.0
// The module that a node was exported from.
#include "quant/placement/module_path.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace bertcl::quant {
namespace {

std::string module_path(const std::string& name) {
  std::string path = name.starts_with('/') ? name.substr(1) : name;
  std::ranges::replace(path, '/', '.');
  const auto last = path.rfind('.');
  return last == std::string::npos ? "" : path.substr(0, last);
}

bool passes_on(const onnx::NodeProto& node) {
  constexpr std::string_view ops[] = {"Identity", "Cast", "Transpose", "DequantizeLinear",
                                      "QuantizeLinear"};
  return std::any_of(std::begin(ops), std::end(ops),
                     [&](std::string_view op) { return is_op(node, op); });
}

/// "....query.bias", also after Casts and Transposes.
std::string module_of_constant(const GraphIndex& index, std::string tensor) {
  for (int steps = 0; steps < 4; ++steps) {
    if (tensor.ends_with(".weight") || tensor.ends_with(".bias")) return module_path(tensor);
    const int producer = index.producer(tensor);
    if (producer < 0 || index.node(producer).input_size() == 0 || !passes_on(index.node(producer)))
      break;
    tensor = index.node(producer).input(0);
  }
  return "";
}

/// Of the first operand that tells it; empty where none does, or the node is -1.
std::string module_of_constants(const GraphIndex& index, int node) {
  if (node < 0) return "";
  for (const auto& input : index.node(node).input())
    if (auto module = module_of_constant(index, input); !module.empty()) return module;
  return "";
}

}  // namespace

std::string module_of(const GraphIndex& index, const Structure& structure, int node) {
  const auto& n = index.node(node);
  if (n.name().find('/') != std::string::npos) return module_path(n.name());
  if (auto module = module_of_constants(index, node); !module.empty()) return module;
  if (n.output_size() == 0) return module_path(n.name());
  // Gamma or beta tells the module of the norm's parent, the bias that of the MatMul.
  if (const auto norm = structure.normalized.find(n.output(0)); norm != structure.normalized.end())
    if (auto module = module_of_constants(index, index.producer(norm->second)); !module.empty())
      return module_path(module);
  for (const Use use : index.uses(n.output(0)))
    if (auto module = module_of_constants(index, use.node); !module.empty()) return module;
  return module_path(n.name());
}

}  // namespace bertcl::quant
