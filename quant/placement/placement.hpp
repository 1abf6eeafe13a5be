// SPDX-License-Identifier: Apache-2.0
// Which inputs of which nodes get Q/DQ.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"

namespace bertcl::quant {

/// Which Adds are quantized if `Add` is among the operators.
enum class Adds {
  /// Those whose result LayerNorm or RMSNorm takes: the residual stream, embeddings too. Operands
  /// that a norm takes, too, as in encoders whose norms come before their layers, stay float.
  layer_norm,
  encoder,  ///< of these the ones after a MatMul: without the embeddings
  all,      ///< every sum of floats, with all operands: biases, masks aside
};

/// Results in a BERT that can be quantized for all their readers.
enum class Place {
  linear,         ///< a MatMul with a weight, after its bias; not where the residual is added next
  scores,         ///< Q x K^T, before scale and mask
  probabilities,  ///< Softmax, with 0 for NaN where the file says so
  context,        ///< P x V
  gelu,           ///< GELU
  sum,            ///< what a LayerNorm or RMSNorm takes
  layer_norm,     ///< what a LayerNorm or RMSNorm gives
};

struct PlacementOptions {
  /// Operators whose inputs are quantized, of quantizable_operators().
  std::set<std::string> op_types{"MatMul"};
  Adds adds = Adds::layer_norm;
  /// One scale per index of the last axis for inputs of Adds before a LayerNorm: no MatMul sums
  /// over it, so finer scales cost nothing. Not with Adds::all, nor if their results are quantized,
  /// nor for the result of a quantized node, as of a MatMul without bias.
  bool add_channels = false;
  /// Quantize the MatMuls with no MatMul after them: the head of the model.
  bool head = true;
  /// Operators whose results are also quantized, for all their readers.
  std::set<std::string> output_op_types{};
  std::set<Place> places{};
  /// Only nodes with such a name, `*` and `?` as in file names; empty: all. A node without a name
  /// is known by its first output.
  std::vector<std::string> include{};
  /// Nodes to leave in float, by name as above.
  std::vector<std::string> exclude{};
  /// Regular expressions; operands whose quantizer (QuantizerNames) holds a match stay float.
  std::vector<std::string> disable_keywords{};
  /// The same after "layer.N.", and back again.
  std::vector<std::string> disable_layer_modules{}, enable_layer_modules{};
};

/// How a tensor is quantized.
enum class Role {
  activation,  ///< by calibration, per tensor
  channels,    ///< by calibration, per index of the last axis
  weight,      ///< a constant second input of MatMul, Gemm or Conv
  constant,    ///< another constant: as activations, by its own range
};
const char* name_of(Role role);

struct Operand {
  int input = 0;
  std::string tensor;
  Role role = Role::activation;
};

/// A node whose inputs are quantized.
struct Site {
  int node = 0;
  std::vector<Operand> operands;  ///< none where all of them are quantized elsewhere

  bool has_weight() const {
    return std::ranges::any_of(operands, [](const Operand& o) { return o.role == Role::weight; });
  }
};

/// A node that could be quantized but stays float.
struct SkippedNode {
  std::string node;
  std::string op;
  std::string reason;
};

struct Placement {
  std::vector<Site> sites;
  std::vector<std::string> outputs;  ///< tensors quantized for all their readers, by producer
  std::vector<SkippedNode> skipped;
};

/// Labels of nodes that hold MatMuls and are not expanded, and why (Expanded::unexpanded).
using UnexpandedNodes = std::map<std::string, std::string>;

/// Chooses sites and outputs. Tensors known not to be f32 are skipped, and so are the `nested`
/// MatMuls. Throws Error if an operator cannot be quantized, a pattern matches no node, a keyword
/// no quantizer, or if nothing is left to quantize.
Placement place(const GraphIndex& index, Constants& constants, const Structure& structure,
                const PlacementOptions& options, const TypeOf& type_of = {},
                const UnexpandedNodes& unexpanded = {}, std::vector<SkippedNode> nested = {});

}  // namespace bertcl::quant
