// SPDX-License-Identifier: Apache-2.0
// Recognizes the parts of a BERT in an ONNX graph, by tensors and operators and not by names.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"

namespace bertcl::quant {

/// softmax(scale * Q x K^T + mask) x V
struct AttentionParts {
  int scores = -1;   ///< the node Q x K^T
  int softmax = -1;  ///< the node
  int context = -1;  ///< the node P x V
  std::string q, k, v;
  /// The MatMul nodes whose results become q, k and v; -1 where there is none with a weight.
  int q_linear = -1, k_linear = -1, v_linear = -1;
};

/// All of them, by the place of the Softmax in the file.
std::vector<AttentionParts> find_attentions(const GraphIndex& index, Constants& constants);

/// True for the result of a GELU: the operator, or x * (1 + erf or tanh of x) in primitives. The
/// Tanh of a pooler is none.
bool is_gelu(const GraphIndex& index, const std::string& tensor);

/// True if the node's results are elements of its first input, elsewhere: Reshape, Transpose, ...
bool moves_elements(const onnx::NodeProto& node);

/// The results of all LayerNorms, with gamma and beta.
std::vector<std::string> layer_norm_outputs(const GraphIndex& index, Constants& constants);

/// The result of a product with the bias that is added to it; the MatMul's own without one.
std::string with_bias(const GraphIndex& index, Constants& constants, int product);

/// True for what depends on an attention mask alone (an input with "mask" in its name): masks have
/// ranges of which the scores are no part.
bool is_mask(const GraphIndex& index, const std::string& tensor);

/// The path of the module that a node was exported from, with dots
/// ("bert.encoder.layer.0.attention.self.query"): of its name, else of a constant that it or the
/// node after it reads; empty where neither tells.
std::string module_of(const GraphIndex& index, int node);

}  // namespace bertcl::quant
