// SPDX-License-Identifier: Apache-2.0
// What a graph computes by the plain definitions of its operators, and how far others may be off.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::tests {

using Tensors = std::map<std::string, ir::Tensor, std::less<>>;

/// Inputs of one shape for a random graph. The mask is ones and then zeros, or any that has a one
/// in each row; all ones where the graph has a DynamicQuantizeLinear, whose range is one over fewer
/// rows when padding is dropped.
Tensors random_inputs(const ir::Graph& graph, unsigned seed);

/// What the graph means for these inputs, and by how much each output changes when the inputs do in
/// the last digits: where sums cancel or a norm divides by little, rounding errors grow as much.
struct Reference {
  std::vector<ir::Tensor> outputs;  // in the order of the graph
  std::vector<double> allowed;

  Reference(const ir::Graph& graph, const Tensors& inputs);

  /// The first output that differs by more; "" if none does. Given a mask, outputs [batch, seq, ..]
  /// count where it is not 0, and others that have rows of tokens do not.
  std::string difference(const ir::Graph& graph, const Tensors& found,
                         const ir::Tensor* mask = nullptr) const;
};

}  // namespace bertcl::tests
