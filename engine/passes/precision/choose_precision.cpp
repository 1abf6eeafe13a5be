// SPDX-License-Identifier: Apache-2.0
// The requested precision, in the graph: linear and attention record their arithmetic, and values
// that bf16 kernels alone read are stored in bf16.
//
//   x -> linear -> h:f32 -> linear -> y    becomes    x -> linear {precision = "bf16"} -> h:bf16
//                                                       -> linear {precision = "bf16"} -> y
//
// A norm that others read, too, gives both forms:
//
//   add_norm -> n:f32 -> linear, add_norm    becomes    add_norm -> n:f32 -> add_norm
//                                                             \--> n.bf16 -> linear
//
// Changes numbers: fp16 rounds weights to 11 bits (and operands, where the kernel multiplies
// halves), bf16 rounds both operands to 8.
#include <algorithm>

#include "ops/norm.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// True if this linear reads the value in bf16. It needs bias and weights in f32.
bool is_bf16_operand(const ir::Node& node, const ir::Value* value) {
  return node.op == linear::op && ops::precision_of(node) == ir::DType::bf16 &&
         node.inputs[linear::x] == value && std::ranges::count(node.inputs, value) == 1;
}

bool is_read_by_linear_only(const ir::Graph& g, const ir::Value* value) {
  return !g.is_output(value) && !value->users.empty() &&
         std::ranges::all_of(value->users,
                             [&](const ir::Node* user) { return is_bf16_operand(*user, value); });
}

/// Why float attention between linears in bf16 stays in f32; "" if it need not.
std::string why_not_bf16(const ir::Graph& g, const ir::Node& attention) {
  const std::int64_t hidden = attention.output()->type.shape.back().constant();
  if (hidden / attention.int_attribute("heads") % 2 != 0) return "its head size is odd";
  if (attention.input(attention::bias) || attention.has("window"))
    return "its kernel is not used with an attention bias or a window";
  if (attention.has("offsets"))  // rows are read by pairs of columns
    for (const std::int64_t offset : attention.ints_attribute("offsets"))
      if (offset % 2 != 0) return "its operands start at an odd column";
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Value* operand = attention.inputs[i];
    const bool is_read_by_others =
        g.is_output(operand) || std::ranges::any_of(operand->users, [&](const ir::Node* user) {
          return user != &attention;
        });
    if (!operand->producer || operand->producer->op != linear::op || is_read_by_others)
      return "its operands are not results of linear with a single use";
    if (operand->type.shape.back().constant() % 2 != 0)
      return "its operands have an odd number of columns";
  }
  return is_read_by_linear_only(g, attention.output()) ? "" : "its result is read in fp32";
}

void store_in_bf16(ir::Value* value) { value->type.dtype = ir::DType::bf16; }

void choose_for_attention(ir::Graph& g, ir::Node& attention) {
  const std::string reason = why_not_bf16(g, attention);
  if (!reason.empty()) {
    attention.attributes["precision_reason"] = "bf16: " + reason;
    return;
  }
  ops::set_precision(attention, ir::DType::bf16);
  for (std::size_t i = 0; i < 3; ++i) store_in_bf16(attention.inputs[i]);
  store_in_bf16(attention.output());
}

/// The second result of a norm that linears read: the first in bf16.
void add_bf16_result(ir::Graph& g, ir::Node& norm) {
  ir::Value* value = norm.output();
  const std::vector<ir::Node*> users = value->users;
  ir::Value* narrow = nullptr;
  for (ir::Node* user : users) {
    if (!is_bf16_operand(*user, value)) continue;
    if (!narrow)
      narrow = g.add_result(&norm, value->name + ".bf16", {ir::DType::bf16, value->type.shape});
    g.set_input(user, linear::x, narrow);
  }
}

void choose_bf16(ir::Graph& g) {
  for (const auto& node : g.nodes())
    if (node->op == linear::op) ops::set_precision(*node, ir::DType::bf16);
  for (const auto& node : g.nodes()) {
    if (node->op == attention::op) choose_for_attention(g, *node);
    if (node->op == linear::op && is_read_by_linear_only(g, node->output()))
      store_in_bf16(node->output());
    if ((node->op == add_norm::op || node->op == embed_norm::op) &&
        node->outputs.size() == ops::first_quantized_result(*node))
      add_bf16_result(g, *node);
  }
}

bool choose(ir::Graph& g, const Precision& precision) {
  if (precision.type == ir::DType::f32 && precision.reason.empty()) return false;
  const auto is_float = [](const auto& node) {
    return node->op == linear::op || node->op == attention::op;
  };
  if (std::ranges::none_of(g.nodes(), is_float)) return false;
  if (precision.type == ir::DType::bf16) choose_bf16(g);
  for (const auto& node : g.nodes()) {
    if (!is_float(node)) continue;
    if (!precision.reason.empty()) node->attributes["precision_reason"] = precision.reason;
    if (precision.type == ir::DType::f16) ops::set_precision(*node, ir::DType::f16);
  }
  return true;
}

}  // namespace

Pass choose_precision(const Precision& precision) {
  return {"choose_precision", [precision](ir::Graph& g) { return choose(g, precision); }};
}

}  // namespace bertcl::passes
