// SPDX-License-Identifier: Apache-2.0
// Lowers the compiled graph to the plan: each node in order, then the outputs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "ir/input_role.hpp"
#include "ir/node_error.hpp"
#include "ir/port.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/symbols.hpp"
#include "passes/node_queries.hpp"
#include "passes/token_values.hpp"
#include "plan/compared_pad_ids.hpp"
#include "plan/lowering_table.hpp"
#include "plan/ops/all.hpp"
#include "plan/persistent_kernel.hpp"
#include "support/for_each.hpp"

namespace bertcl::plan {

// Each file NAME.cpp of plan/ops/ has the function add_NAME().
#define BERTCL_DECLARE_ADD(name) void add_##name(LoweringTable& table);
BERTCL_FOR_EACH(BERTCL_DECLARE_ADD, BERTCL_LOWERING_FILES)

namespace {

namespace symbols = ops::symbols;

const LoweringTable& lowerings() {
  static const LoweringTable table = [] {
    LoweringTable t;
#define BERTCL_ADD_LOWERINGS(name) add_##name(t);
    BERTCL_FOR_EACH(BERTCL_ADD_LOWERINGS, BERTCL_LOWERING_FILES)
    return t;
  }();
  return table;
}

/// True if the value is the float form of a quantized one: DequantizeLinear, then only ops that
/// move elements.
bool is_dequantized(const ir::Value* value) {
  while (value && value->producer && ops::traits(*value->producer).moves_elements)
    value = value->producer->input(0);
  return value && value->producer && value->producer->op == "DequantizeLinear";
}

/// The symbols that have a size when a run starts: those of the inputs, and those of packing.
ir::Symbols known_symbols(const ir::Graph& graph) {
  ir::Symbols known = graph.input_symbols();
  known.insert({symbols::tokens, symbols::batch, symbols::offsets, symbols::longest,
                symbols::attention_rows});
  return known;
}

/// The pairs of sizes that follow from the input shapes.
template <class Pairs>
Pairs checkable(Pairs pairs, const ir::Symbols& known) {
  std::erase_if(pairs, [&](const auto& p) {
    return ir::unknown_symbol(std::array{p.first, p.second}, known) != nullptr;
  });
  return pairs;
}

/// Throws if a result of `node` has a size that no run could know.
void check_sizes(const ir::Node& node, const ir::Symbols& known) {
  for (const ir::Value* out : node.outputs)
    if (const std::string* symbol = ir::unknown_symbol(out->type.shape, known))
      throw ir::NodeError(
          node.sources,
          fmt::format("{}: dimension '{}' of its result '{}' ({}) is data-dependent or a sum of "
                      "symbolic sizes; export the model with fixed sizes there",
                      node.describe(), *symbol, out->name, ir::str(out->type)),
          ErrorCode::unsupported);
}

/// Why an operator that the compiler has not made runs alone, where quantization around it is the
/// reason; "" otherwise.
std::string why_not_fused(const ir::Node& node) {
  if (const ops::OpDef* def = ops::find(node.op); def && def->is_own) return "";
  if (passes::is_quantization(node)) return "";
  const auto is = [](const ir::Node* n, const char* op) { return n && n->op == op; };
  const bool dequantized = std::ranges::any_of(
      node.inputs, [&](const ir::Value* in) { return in && is(in->producer, "DequantizeLinear"); });
  const bool quantized = std::ranges::any_of(node.outputs, [&](const ir::Value* out) {
    return std::ranges::any_of(out->users,
                               [&](const ir::Node* user) { return is(user, "QuantizeLinear"); });
  });
  if (!dequantized && !quantized) return "";
  return fmt::format(
      "not fused: the file quantizes {}, and fusing would change where values are rounded",
      dequantized && quantized ? "its operands and its result"
      : dequantized            ? "its operands"
                               : "its result");
}

/// Errors name the node.
void lower_node(Builder& builder, const ir::Graph& graph, const ir::Node& node) {
  const Lowering* lowering = find_lowering(node.op);
  if (!lowering)
    throw ir::NodeError(node.sources,
                        fmt::format("{}: this operator has no OpenCL kernel; "
                                    "docs/operators.md lists those that have one",
                                    node.describe()),
                        ErrorCode::unsupported);
  const std::size_t first = builder.plan().steps.size();
  builder.set_node(node);
  try {
    (*lowering)(builder, graph, node);
    for (std::size_t i = first; i < builder.plan().steps.size(); ++i)
      if (std::string& reason = builder.plan().steps[i].why_not_faster; reason.empty())
        reason = why_not_fused(node);
  } catch (const VariantUnsupported&) {
    throw;
  } catch (const Error& e) {
    const std::string message = e.what();
    // With a code, since with_code() would replace the error by one without nodes.
    const bool is_named = message.starts_with(node.describe() + ": ");
    throw ir::NodeError(
        node.sources, is_named ? message : fmt::format("{}: {}", node.describe(), message),
        e.code() == ErrorCode::invalid_argument ? ErrorCode::unsupported : e.code());
  }
}

/// MatMuls that a Q/DQ file asks to be int8 and that run in float, also inside attention, with the
/// reason.
void note_float_matmuls(const ir::Graph& graph, Plan& plan) {
  for (const auto& node : graph.nodes()) {
    if (node->has("float_reason")) {
      plan.notes.push_back(fmt::format("{} runs in fp32: {}", node->describe(),
                                       node->string_attribute("float_reason")));
    } else if (std::ranges::any_of(node->inputs, is_dequantized)) {
      if (node->op == "MatMul")
        plan.notes.push_back(fmt::format(
            "{} runs in fp32: it has a quantized operand but is neither a linear nor part of an "
            "attention whose q, k, v and probabilities are all quantized",
            node->describe()));
      if (node->op == ops::operands::attention::op)
        plan.notes.push_back(
            fmt::format("{} runs in fp32: it has a quantized operand, but its probabilities are "
                        "not quantized",
                        node->describe()));
    }
  }
}

/// A table of positions is cut to the length of the ids where it is not read with them.
void limit_positions(Plan& plan) {
  for (const auto& [size, most] : plan.at_most) {
    const auto is_length = [&size](const ir::Port& port) {
      return ir::is_token_ids(port.name, port.type) && port.type.shape[1] == size;
    };
    if (size.is_constant() || !most.is_constant() ||
        std::ranges::none_of(plan.model_inputs, is_length))
      continue;
    plan.max_positions =
        plan.max_positions > 0 ? std::min(plan.max_positions, most.constant()) : most.constant();
  }
}

Plan try_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
              const Options& options) {
  Plan plan;
  plan.context = std::move(context);
  Builder builder(plan, options);
  std::optional<WeightCheck> weights;
  if (!options.allow_nonfinite.value_or(false) && plan.context)
    builder.check_weights(weights.emplace(graph, options.allow_nonfinite.has_value()));
  lower(builder, graph);
  builder.finish();
  if (plan.persistent_kernel) {
    std::vector<const opencl::Buffer*> constants;
    for (const opencl::Buffer& buffer : plan.constants) constants.push_back(&buffer);
    plan.constant_addresses = opencl::addresses_of(*plan.context, constants);
  }
  return plan;
}

}  // namespace

const Lowering* find_lowering(std::string_view op) {
  const auto it = lowerings().find(op);
  return it == lowerings().end() ? nullptr : &it->second;
}

void lower(Builder& builder, const ir::Graph& graph) {
  Plan& plan = builder.plan();
  const ir::Symbols known = known_symbols(graph);
  plan.equal_sizes = checkable(graph.assumptions(), known);
  for (const auto& [size, most] : checkable(graph.at_most(), known)) builder.limit(size, most);
  for (const ir::Value* input : graph.inputs()) {
    plan.model_inputs.push_back({input->name, input->type});
    const bool only_packed =
        !graph.is_output(input) && std::ranges::all_of(input->users, [](const ir::Node* n) {
          return n->op == ops::operands::pack_inputs::op;
        });
    if (!only_packed)
      plan.inputs.push_back({InputKind::dense, input->name, builder.add_slot(input)});
  }
  for (const auto& node : graph.nodes()) {
    if (node->op == ops::operands::observe::op) {
      if (node->inputs[0]->is_constant()) continue;
      plan.taps.push_back({node->string_attribute("name"), builder.slot_of(node->inputs[0]),
                           static_cast<int>(plan.steps.size()) - 1});
      continue;
    }
    check_sizes(*node, known);
    lower_node(builder, graph, *node);
  }
  limit_positions(plan);
  const std::set<const ir::Value*> of_tokens = passes::values_of_tokens(graph);
  for (const ir::GraphOutput& output : graph.outputs()) {
    plan.model_outputs.push_back({output.name, output.value->type});
    if (output.value->is_constant()) {
      plan.outputs.push_back({output.name, -1, *output.value->constant});
      continue;
    }
    const ir::Node* producer = output.value->producer;
    const bool unpacked =
        producer && producer->op == ops::operands::unpack::op && producer->outputs.size() == 1;
    plan.outputs.push_back({output.name,
                            builder.slot_of(output.value),
                            {},
                            unpacked ? builder.slot_of(producer->inputs[0]) : -1,
                            of_tokens.contains(output.value)});
  }
  builder.check_contracts();
  add_persistent_kernel(builder);
  note_float_matmuls(graph, plan);
  plan.compared_pad_ids = compared_pad_ids(graph);
}

Plan make_plan(const ir::Graph& graph, std::shared_ptr<opencl::Context> context,
               const Options& options) {
  Options attempt = options;
  for (;;) {
    try {
      Plan plan = try_plan(graph, context, attempt);
      if (options.try_launches && context && !context->info().is_cpu()) options.try_launches(plan);
      return plan;
    } catch (const VariantUnsupported& refused) {
      if (!attempt.refused.emplace(refused.variant, refused.reason).second) throw;
    }
  }
}

}  // namespace bertcl::plan
