// SPDX-License-Identifier: Apache-2.0
// Runs graphs on the host.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ops/infer.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {

/// Runs a graph text with inferred types; its inputs by name.
inline std::vector<ir::Tensor> run(const std::string& text, const Tensors& in) {
  ir::Graph graph = ir::parse(text);
  SymbolicValues values;
  infer(graph, values);
  return interpret(graph, in);
}
inline ir::Tensor floats(ir::Sizes shape, std::vector<float> v) {
  return ir::Tensor::of<float>(std::move(shape), std::move(v));
}
inline ir::Tensor ints(ir::Sizes shape, std::vector<std::int64_t> v) {
  return ir::Tensor::of<std::int64_t>(std::move(shape), std::move(v));
}

}  // namespace bertcl::ops
