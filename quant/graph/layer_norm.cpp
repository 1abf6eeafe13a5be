// SPDX-License-Identifier: Apache-2.0
// Recognizes the Add in front of a LayerNorm, in every spelling of LayerNorm.
#include "quant/graph/layer_norm.hpp"

#include <algorithm>
#include <string_view>

namespace bertcl::quant {
namespace {

bool passes_on(const onnx::NodeProto& node) {
  return node.output_size() > 0 &&
         (is_op(node, "Identity") || is_op(node, "Cast") || is_op(node, "Dropout"));
}

/// A tensor and what Identity, Cast and Dropout make of it.
std::vector<std::string> aliases(const GraphIndex& index, const std::string& tensor) {
  std::vector<std::string> all{tensor};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const Use use : index.uses(std::string(all[i])))
      if (use.input == 0 && passes_on(index.node(use.node)))
        if (const auto& made = index.node(use.node).output(0);
            std::find(all.begin(), all.end(), made) == all.end())
          all.push_back(made);
  return all;
}

/// The readers of a tensor through aliases that are `op` with it as input `input`.
std::vector<int> readers(const GraphIndex& index, const std::string& tensor, std::string_view op,
                         int input = 0) {
  std::vector<int> nodes;
  for (const auto& alias : aliases(index, tensor))
    for (const Use use : index.uses(alias))
      if (const auto& node = index.node(use.node);
          use.input == input && is_op(node, op) && node.output_size() > 0)
        nodes.push_back(use.node);
  return nodes;
}

/// x - mean(x): the squares are averaged, eps is added and the root taken.
bool is_normalized(const GraphIndex& index, const std::string& difference) {
  std::vector<int> squares = readers(index, difference, "Pow");
  const auto products = readers(index, difference, "Mul", 0);
  const auto others = readers(index, difference, "Mul", 1);
  for (const int node : products)
    if (std::find(others.begin(), others.end(), node) != others.end()) squares.push_back(node);
  for (const int square : squares)
    for (const int mean : readers(index, index.node(square).output(0), "ReduceMean"))
      for (const int input : {0, 1})
        for (const int add : readers(index, index.node(mean).output(0), "Add", input))
          if (!readers(index, index.node(add).output(0), "Sqrt").empty()) return true;
  return false;
}

}  // namespace

bool feeds_layer_norm(const GraphIndex& index, const std::string& tensor) {
  if (!readers(index, tensor, "LayerNormalization").empty()) return true;
  const auto minuends = readers(index, tensor, "Sub", 0);
  for (const int mean : readers(index, tensor, "ReduceMean"))
    for (const int sub : readers(index, index.node(mean).output(0), "Sub", 1))
      if (std::find(minuends.begin(), minuends.end(), sub) != minuends.end() &&
          is_normalized(index, index.node(sub).output(0)))
        return true;
  return false;
}

std::vector<int> adds_feeding_layer_norm(const GraphIndex& index) {
  std::vector<int> adds;
  for (int n = 0; n < index.node_count(); ++n)
    if (const auto& node = index.node(n);
        is_op(node, "Add") && node.output_size() > 0 && feeds_layer_norm(index, node.output(0)))
      adds.push_back(n);
  return adds;
}

}  // namespace bertcl::quant
