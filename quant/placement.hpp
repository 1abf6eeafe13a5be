// SPDX-License-Identifier: Apache-2.0
// Which inputs of which nodes get Q/DQ.
#pragma once
#include <string>
#include <vector>

#include "quant/constants.hpp"
#include "quant/graph_index.hpp"

namespace bertcl::quant {

struct PlacementOptions {
  /// Quantize the products behind which no other product comes: the head of the model.
  bool head = true;
  /// Quantize both inputs of each Add that feeds a LayerNorm: the residual stream.
  bool residual = false;
  /// Names of nodes to leave in float, `*` and `?` as in file names. A node without a name is
  /// known by its first output.
  std::vector<std::string> exclude;
};

/// How a tensor becomes integers.
enum class Role {
  activation,  ///< by calibration, per tensor
  weight,      ///< a constant second input of MatMul: i8, per column
  constant,    ///< another constant: as activations, by its own range
};
const char* name_of(Role role);

struct Operand {
  int input = 0;
  std::string tensor;
  Role role = Role::activation;
};

/// A node whose inputs are quantized. Only the inputs named here will read quantized values; other
/// readers of the same tensors keep the float ones.
struct Site {
  int node = 0;
  std::vector<Operand> operands;
};

/// A node that could hold integers and stays in float.
struct Left {
  std::string node;
  std::string op;
  std::string reason;
};

struct Placement {
  std::vector<Site> sites;
  std::vector<Left> left;
};

/// Chooses the sites: both inputs of every MatMul (weights, activations, Q x K^T and P x V), and by
/// option the Adds in front of LayerNorm. Throws Error if a pattern of `exclude` fits no node, or
/// if nothing is left to quantize.
Placement place(const GraphIndex& index, Constants& constants, const PlacementOptions& options);

}  // namespace bertcl::quant
