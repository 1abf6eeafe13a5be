// SPDX-License-Identifier: Apache-2.0
// The parts of a transformer, as nodes and tensors of the file.
//
// The compiler's passes bring the graph to one spelling and recognize GELU and norms. Attention and
// biases are recognized here, including attention that the engine cannot fuse: its MatMuls can
// still be quantized. The names of values lead back to the file.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quant/graph/graph_index.hpp"

namespace bertcl::quant {

/// softmax(scale * Q x K^T + mask) x V
struct AttentionParts {
  int scores = -1;   ///< the node Q x K^T
  int softmax = -1;  ///< the node
  /// The node that gives P: `softmax`, or Where(IsNaN(p), 0, p) after it, as torch writes it.
  int probabilities = -1;
  int context = -1;  ///< the node P x V
  std::string q, k, v;
  /// The MatMul nodes whose results become q, k and v; -1 where there is none with a weight.
  int q_linear = -1, k_linear = -1, v_linear = -1;
};

struct Structure {
  std::vector<AttentionParts> attentions;          ///< by the place of the Softmax in the file
  std::vector<int> residual_adds;                  ///< nodes whose sum a norm reads, ascending
  std::vector<std::string> layer_norms;            ///< results of LayerNorms and RMSNorms
  std::map<std::string, std::string> without_nan;  ///< Where(IsNaN(p), 0, p) of a Softmax -> p
  std::map<std::string, std::string> scaled;       ///< q or k times a positive number -> q or k
  std::map<std::string, std::string> normalized;   ///< operand of a LayerNorm or RMSNorm -> result
  std::set<std::string> gelus;                     ///< their results, and these times a constant
  std::map<std::string, std::string> biased;  ///< result of a MatMul -> its sum with a constant
  std::set<std::string> masks;  ///< what depends on an attention mask alone among the inputs

  bool is_residual(int node) const;
  /// The result of a MatMul with the bias that is added to it; the MatMul's own without one.
  const std::string& with_bias(const std::string& matmul) const;
};

/// `graph` as it was imported; `index` tells the nodes of the same model, which may have been
/// brought to another opset.
Structure recognize(ir::Graph graph, const GraphIndex& index);

/// True if the node's result holds elements of its first input: Reshape, Transpose, ...
bool moves_elements(const onnx::NodeProto& node);

}  // namespace bertcl::quant
