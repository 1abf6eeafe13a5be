// SPDX-License-Identifier: Apache-2.0
// Which values of a plan are kept in bf16: those that bf16 kernels alone read.
#include "plan/bf16.hpp"

#include <algorithm>

#include "kernels/variants.hpp"
#include "ops/operands.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

bool is_left_operand(const ir::Node& node, const ir::Value* value) {
  return node.op == "linear" && node.inputs[ops::operands::linear::x] == value &&
         std::count(node.inputs.begin(), node.inputs.end(), value) == 1;
}

}  // namespace

kernels::Refusal why_not_bf16(Builder& b) {
  const kernels::GemmVariant& variant = kernels::gemm_bf16_variant();
  if (!b.options().bf16) return {"not asked for"};
  if (b.is_disabled(variant.name)) return {"switched off"};
  return why_not(b, variant.needs);
}

std::string why_not_bf16_attention(Builder& b, const ir::Graph& graph, const ir::Node& attention) {
  const std::int64_t hidden = attention.output()->type.shape.back().constant();
  if (hidden / attention.int_attribute("heads") % 2 != 0)
    return "its heads have an odd number of columns";
  if (attention.has("offsets"))  // rows are read by pairs of columns
    for (const std::int64_t offset : attention.ints_attribute("offsets"))
      if (offset % 2 != 0) return "its operands begin at an odd column";
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Value* operand = attention.inputs[i];
    const bool is_product = operand->producer && operand->producer->op == "linear";
    const bool has_other_readers =
        graph.is_output(operand) ||
        std::any_of(operand->users.begin(), operand->users.end(),
                    [&](const ir::Node* user) { return user != &attention; });
    if (!is_product || has_other_readers)
      return "its operands are not results of products that it reads alone";
    if (operand->type.shape.back().constant() % 2 != 0)
      return "its operands have an odd number of columns";
  }
  return is_read_in_bf16_only(b, graph, attention.output()) ? "" : "its result is read in fp32";
}

bool is_bf16_operand(Builder& b, const ir::Value* value) {
  return why_not_bf16(b).reason.empty() &&
         std::any_of(value->users.begin(), value->users.end(),
                     [&](const ir::Node* user) { return is_left_operand(*user, value); });
}

bool is_read_in_bf16_only(Builder& b, const ir::Graph& graph, const ir::Value* value) {
  if (!why_not_bf16(b).reason.empty() || graph.is_output(value) || value->users.empty())
    return false;
  return std::all_of(value->users.begin(), value->users.end(), [&](const ir::Node* user) {
    return is_left_operand(*user, value) ||
           (user->op == "attention" && why_not_bf16_attention(b, graph, *user).empty());
  });
}

}  // namespace bertcl::plan
