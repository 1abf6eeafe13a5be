// SPDX-License-Identifier: Apache-2.0
// Runs graphs on the host by the operators' plain definitions: for tests, for recognizing what a
// subgraph computes, and as the reference of the compiler.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// Named tensors, as a graph takes and gives them.
using Tensors = std::map<std::string, ir::Tensor, std::less<>>;

/// The tensors of known values.
using Known = std::map<const ir::Value*, ir::Tensor>;

/// All outputs in the order of the graph. Throws bertcl::Error naming the node, input or output
/// whose type does not match, and for operators that cannot be evaluated on the host.
std::vector<ir::Tensor> interpret(const ir::Graph& graph, const Tensors& inputs);

/// Evaluates only what `wanted` needs. Sizes of symbols come from `bindings` and from the shapes of
/// the known tensors; every tensor that is computed is checked against its declared type.
ir::Tensor evaluate_subgraph(const ir::Value* wanted, Known known, ir::Bindings bindings = {});

/// Evaluates one node with constant operands; empty if it cannot be evaluated.
std::vector<ir::Tensor> evaluate_constant(const ir::Node& node);

/// Binds the symbols of `shape` to `sizes`; false on a contradiction.
bool bind(const ir::Shape& shape, const ir::Sizes& sizes, ir::Bindings& bindings);

}  // namespace bertcl::ops
