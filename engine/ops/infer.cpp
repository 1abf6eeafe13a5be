// SPDX-License-Identifier: Apache-2.0
// Type inference of nodes and graphs.
#include "ops/infer.hpp"

#include <fmt/format.h>

#include <utility>

#include "bertcl/error.hpp"
#include "ops/op.hpp"
#include "ops/type_constraints.hpp"

namespace bertcl::ops {
namespace {

/// True for few elements, whose number is known.
bool is_small(const ir::Type& type) {
  const auto sizes = ir::constant_shape(type.shape);
  return sizes && ir::element_count(*sizes) <= SymbolicValues::kMaxElements;
}

bool holds_sizes(const ir::Type& type) {
  return !ir::is_float(type.dtype) && type.shape.size() <= 1;
}

/// Results whose operands are all numbers: the operator itself computes them.
bool evaluate_numbers(const OpDef& def, ir::Node& node, SymbolicValues& values) {
  if (node.inputs.empty()) return false;
  std::vector<const ir::Tensor*> inputs;
  for (const ir::Value* in : node.inputs) {
    inputs.push_back(values.tensor(in));
    if (in && !inputs.back()) return false;
  }
  const ir::Bindings no_symbols;
  auto results = def.evaluate({node, std::move(inputs), no_symbols});
  for (std::size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    values.set(node.outputs[i], std::move(results[i]));
  return !results.empty();
}

}  // namespace

void infer(ir::Graph& graph, ir::Node& node, SymbolicValues& values) {
  const OpDef& def = get(node);
  if (node.inputs.size() < def.min_inputs || node.inputs.size() > def.max_inputs)
    throw Error(fmt::format("{}: got {} operands, expected {} to {}", node.describe(),
                            node.inputs.size(), def.min_inputs, def.max_inputs));
  for (std::size_t i = 0; i < def.min_inputs; ++i)
    if (!node.inputs[i]) throw Error(fmt::format("{}: operand {} is missing", node.describe(), i));
  check_operand_types(node, def.types);
  InferContext context{{node}, graph, values};
  std::vector<ir::Type> types = def.infer(context);
  if (types.size() < node.outputs.size())
    throw Error(fmt::format("{}: result {} is not supported", node.describe(), types.size()));
  bool small = true, sizes = true;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    node.outputs[i]->type = std::move(types[i]);
    small = small && is_small(node.outputs[i]->type);
    sizes = sizes && holds_sizes(node.outputs[i]->type);
  }
  if (!small || evaluate_numbers(def, node, values) || !sizes || !def.values) return;
  const auto elements = def.values(context);
  for (std::size_t i = 0; i < elements.size() && i < node.outputs.size(); ++i)
    if (elements[i]) values.set(node.outputs[i], *elements[i]);
}

void infer(ir::Graph& graph, SymbolicValues& values) {
  for (ir::Node* node : graph.node_list())
    if (find(node->op)) infer(graph, *node, values);
}

}  // namespace bertcl::ops
