// SPDX-License-Identifier: Apache-2.0
// MatMuls in a graph, and what comes before and after them.
#include "quant/graph/matmuls.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

namespace bertcl::quant {
namespace {

/// The first three may be quantized, the others stay in float.
constexpr std::string_view kMatMuls[] = {
    "MatMul",    "Gemm", "Conv", "Attention", "MultiHeadAttention", "QAttention", "FusedMatMul",
    "FusedGemm", "LSTM", "GRU",  "Einsum"};

}  // namespace

bool is_matmul(const onnx::NodeProto& node) {
  return std::find(std::begin(kMatMuls), std::end(kMatMuls), node.op_type()) != std::end(kMatMuls);
}

int matmul_before(const GraphIndex& index, const std::string& tensor) {
  std::set<int> seen;
  std::vector<std::string> tensors{tensor};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const int producer = index.producer(tensors[i]);
    if (producer < 0 || !seen.insert(producer).second) continue;
    const auto& node = index.node(producer);
    if (is_matmul(node)) return producer;
    tensors.insert(tensors.end(), node.input().begin(), node.input().end());
  }
  return -1;
}

bool MatMuls::is_followed(int node) {
  if (const auto it = followed_.find(node); it != followed_.end()) return it->second;
  bool found = false;
  for (const auto& output : index_.node(node).output())
    for (const Use use : index_.uses(output))
      found = found || is_matmul(index_.node(use.node)) || is_followed(use.node);
  return followed_[node] = found;
}

}  // namespace bertcl::quant
