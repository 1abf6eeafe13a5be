// SPDX-License-Identifier: Apache-2.0
// Type inference of nodes and graphs.
#include "ops/infer.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "ops/op.hpp"
#include "ops/type_constraints.hpp"

namespace bertcl::ops {
namespace {

/// Elements of results whose operands are all numbers: the operator itself computes them.
bool evaluate_numbers(const OpDef& def, ir::Node& node, SymbolicValues& values) {
  if (node.inputs.empty()) return false;
  std::vector<ir::Tensor> tensors(node.inputs.size());
  std::vector<const ir::Tensor*> inputs(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* in = node.inputs[i];
    if (!in) continue;
    const auto numbers = values.constants(in);
    const auto sizes = ir::constant_shape(in->type.shape);
    if (!numbers || !sizes) return false;
    tensors[i] = ir::Tensor::of<std::int64_t>(*sizes, *numbers).converted(in->type.dtype);
    inputs[i] = &tensors[i];
  }
  const ir::Bindings no_symbols;
  const auto results = def.evaluate({node, std::move(inputs), no_symbols});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto ints = results[i].to_ints();
    if (!ir::is_float(results[i].dtype()) && results[i].shape().size() <= 1 && ints.size() <= 64)
      values.set(node.outputs[i], {ints.begin(), ints.end()});
  }
  return true;
}

bool small_integers(const ir::Type& type) {
  if (ir::is_float(type.dtype) || type.shape.size() > 1) return false;
  const auto sizes = ir::constant_shape(type.shape);
  return sizes && ir::element_count(*sizes) <= 64;
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
  InferContext context{graph, node, values};
  std::vector<ir::Type> types = def.infer(context);
  if (types.size() < node.outputs.size())
    throw Error(fmt::format("{}: result {} is not supported", node.describe(), types.size()));
  bool small = true;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    node.outputs[i]->type = std::move(types[i]);
    small = small && small_integers(node.outputs[i]->type);
  }
  if (!small || evaluate_numbers(def, node, values) || !def.values) return;
  const auto elements = def.values(context);
  for (std::size_t i = 0; i < elements.size() && i < node.outputs.size(); ++i)
    if (elements[i]) values.set(node.outputs[i], *elements[i]);
}

void infer(ir::Graph& graph, SymbolicValues& values) {
  for (ir::Node* node : graph.node_list())
    if (find(node->op)) infer(graph, *node, values);
}

}  // namespace bertcl::ops
