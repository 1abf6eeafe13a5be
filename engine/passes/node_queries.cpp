// SPDX-License-Identifier: Apache-2.0
// Single nodes and the values around them, recognized without patterns.
#include "passes/node_queries.hpp"

#include <algorithm>

#include "ops/op.hpp"

namespace bertcl::passes {

bool is_quantization(const ir::Node& node) {
  return ir::is_any_of(node, {"QuantizeLinear", "DequantizeLinear"});
}

bool reduces_last_axis(const ir::Node& reduction) {
  const auto rank = std::ssize(reduction.inputs[0]->type.shape);
  if (!reduction.has("axes") || !reduction.int_attribute("keepdims", 1)) return false;
  const auto& axes = reduction.ints_attribute("axes");
  return axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
}

bool normalizes_last_axis(const ir::Node& norm) {
  const ir::Type& type = norm.output()->type;
  const auto is_vector = [&](const ir::Value* v) {
    return v->is_constant() && v->type.shape == ir::Shape{type.shape.back()};
  };
  return norm.outputs.size() == 1 && type.dtype == ir::DType::f32 &&
         ops::is_last_axis(norm, -1, type.shape) && norm.input(1) && is_vector(norm.inputs[1]) &&
         (!norm.input(2) || is_vector(norm.inputs[2]));
}

bool has_rows(const ir::Shape& shape, const ir::Shape& ids) {
  return shape.size() >= 3 && ids.size() == 2 && shape[0] == ids[0] && shape[1] == ids[1];
}

bool takes_tokens(const ir::Graph& graph) {
  return std::ranges::any_of(graph.inputs(), [](const ir::Value* in) {
    return in->type.shape.size() == 2 && !ir::is_float(in->type.dtype);
  });
}

ir::Node* only_user(const ir::Graph& graph, const ir::Value* value) {
  return value->users.size() == 1 && !graph.is_output(value) ? value->users.front() : nullptr;
}

bool comes_before(const ir::Graph& graph, const ir::Node* node, const ir::Node* other) {
  for (const auto& n : graph.nodes())
    if (n.get() == node || n.get() == other) return n.get() == node;
  return false;
}

std::optional<Scaled> scaled(const ir::Node& node) {
  if (node.op != "Mul" && node.op != "Div") return std::nullopt;
  for (const std::size_t i : {1u, 0u}) {
    if (i == 0 && node.op == "Div") break;
    const auto c = scalar_value(node.inputs[i]);
    ir::Value* x = node.inputs[1 - i];
    if (c && x->type.shape == node.output()->type.shape)
      return Scaled{x, node.op == "Mul" ? *c : 1.0 / *c};
  }
  return std::nullopt;
}

ir::Node* without_nan(const ir::Value* p) {
  if (p->users.size() != 3 && p->users.size() != 2) return nullptr;
  for (ir::Node* user : p->users)
    if (user->op == "Where" && user->inputs[2] == p && scalar_value(user->inputs[1]) == 0.0 &&
        user->inputs[0]->producer && user->inputs[0]->producer->op == "IsNaN" &&
        user->inputs[0]->producer->inputs[0] == p)
      return user;
  return nullptr;
}

std::optional<double> scalar_value(const ir::Value* value) {
  if (!value || !value->is_constant() || value->constant->size() != 1) return std::nullopt;
  return value->constant->to_doubles().front();
}

bool is_column_constant(const ir::Value* value, const ir::Dim& columns) {
  const ir::Shape& shape = value->type.shape;
  return value->is_constant() && !shape.empty() && shape.back() == columns &&
         element_count(shape) == columns;
}

std::optional<std::int64_t> only_integer(const ir::Node& node, std::string_view key,
                                         std::size_t operand) {
  if (node.has(key)) {
    const auto& all = node.ints_attribute(key);
    return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
  }
  const ir::Value* value = node.input(operand);
  if (!value || !value->is_constant() || value->constant->size() != 1) return std::nullopt;
  return value->constant->to_ints().front();
}

}  // namespace bertcl::passes
