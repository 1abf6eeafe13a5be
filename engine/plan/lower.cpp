// SPDX-License-Identifier: Apache-2.0
// From the compiled graph to the plan: each node in order, then the outputs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "plan/ops/ops.hpp"

namespace bertcl::plan {
namespace {

const LoweringTable& lowerings() {
  static const LoweringTable table = [] {
    LoweringTable t;
    add_attention(t);
    add_cast(t);
    add_elementwise(t);
    add_gather(t);
    add_linear(t);
    add_matmul(t);
    add_norm(t);
    add_packing(t);
    add_quantize(t);
    add_reduce(t);
    add_shape(t);
    return t;
  }();
  return table;
}

/// True if the value is the float form of a quantized one: DequantizeLinear, then only ops that
/// move elements.
bool is_dequantized(const ir::Value* value) {
  static const std::set<std::string, std::less<>> moves = {
      "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Split", "Gather", "pack", "unpack"};
  while (value && value->producer && moves.contains(value->producer->op))
    value = value->producer->input(0);
  return value && value->producer && value->producer->op == "DequantizeLinear";
}

/// The sizes that every run has to give equal, as far as the shapes of the inputs tell them.
std::vector<std::pair<ir::Dim, ir::Dim>> checkable_assumptions(const ir::Graph& graph) {
  std::set<std::string> known;
  for (const ir::Value* in : graph.inputs())
    for (const ir::Dim& d : in->type.shape) known.insert(d.symbols().begin(), d.symbols().end());
  const auto is_known = [&](const ir::Dim& d) {
    return std::all_of(d.symbols().begin(), d.symbols().end(),
                       [&](const std::string& s) { return known.contains(s); });
  };
  auto pairs = graph.assumptions();
  std::erase_if(pairs, [&](const auto& p) { return !is_known(p.first) || !is_known(p.second); });
  return pairs;
}

/// Products that a Q/DQ file asks to be int8 and that run in float, with the reason.
void note_float_products(const ir::Graph& graph, Plan& plan) {
  for (const auto& node : graph.nodes()) {
    if (node->has("float_reason")) {
      plan.notes.push_back(fmt::format("{} runs in fp32: {}", node->describe(),
                                       node->string_attribute("float_reason")));
    } else if (node->op == "MatMul") {
      for (const ir::Value* in : node->inputs)
        if (is_dequantized(in)) {
          plan.notes.push_back(fmt::format(
              "{} runs in fp32: it has a quantized operand but is no linear and no part of an "
              "attention whose q, k, v and probabilities are all quantized",
              node->describe()));
          break;
        }
    }
  }
}

}  // namespace

const Lowering* find_lowering(std::string_view op) {
  const auto it = lowerings().find(op);
  return it == lowerings().end() ? nullptr : &it->second;
}

Plan make_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
               const Options& options) {
  Plan plan;
  plan.context = std::move(context);
  plan.equal_sizes = checkable_assumptions(graph);
  Builder builder(plan, options);
  for (const ir::Value* input : graph.inputs()) {
    plan.model_inputs.push_back({input->name, input->type});
    const bool only_packed = !graph.is_output(input) &&
                             std::all_of(input->users.begin(), input->users.end(),
                                         [](const ir::Node* n) { return n->op == "pack_inputs"; });
    if (!only_packed)
      plan.inputs.push_back({InputKind::dense, input->name, builder.add_slot(input)});
  }
  for (const auto& node : graph.nodes()) {
    if (node->op == "observe") {
      if (node->inputs[0]->is_constant()) continue;
      plan.taps.push_back({node->string_attribute("name"), builder.slot_of(node->inputs[0]),
                           static_cast<int>(plan.steps.size()) - 1});
      continue;
    }
    const Lowering* lowering = find_lowering(node->op);
    if (!lowering)
      throw Error(
          fmt::format("{}: no kernel runs this operator on an OpenCL device", node->describe()));
    (*lowering)(builder, graph, *node);
  }
  for (const ir::GraphOutput& output : graph.outputs()) {
    plan.model_outputs.push_back({output.name, output.value->type});
    if (output.value->is_constant())
      plan.outputs.push_back({output.name, -1, *output.value->constant});
    else
      plan.outputs.push_back({output.name, builder.slot_of(output.value), {}});
  }
  note_float_products(graph, plan);
  return plan;
}

}  // namespace bertcl::plan
