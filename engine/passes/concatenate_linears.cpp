// SPDX-License-Identifier: Apache-2.0
// Joins weights, biases and scales of linears along their columns.
#include "passes/concatenate_linears.hpp"

#include <algorithm>
#include <set>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// The same value, or constants of one element that are equal; an absent zero point is 0.
bool same_parameter(const ir::Value* a, const ir::Value* b) {
  if (a == b) return true;
  const auto x = a ? scalar_value(a) : 0, y = b ? scalar_value(b) : 0;
  return x && y && *x == *y;
}

}  // namespace

ir::Value* concatenate_constants(ir::Graph& g, std::span<ir::Value* const> parts,
                                 std::string_view suffix) {
  std::vector<ir::Tensor> tensors;
  for (const ir::Value* part : parts) tensors.push_back(*part->constant);
  return g.add_constant(parts[0]->name + std::string(suffix),
                        ir::Tensor::concat(tensors[0].dtype(), tensors));
}

ir::Value* as_one_per_column(ir::Graph& g, ir::Value* v, ir::Dim columns, ir::DType dtype) {
  const ir::Sizes shape{columns.constant()};
  if (!v) return g.add_constant("zero_point", ir::Tensor::zeros(dtype, shape));
  if (v->constant->shape() == shape) return v;
  const double value = v->constant->to_doubles().front();
  std::vector<double> all(shape[0], value);
  return g.add_constant(v->name, ir::Tensor::of(shape, std::move(all)).converted(dtype));
}

bool can_be_concatenated(std::span<ir::Node* const> p) {
  for (const ir::Node* n : p) {
    if (n->op != p[0]->op || !ops::traits(*n).takes_activation || n->has("activation"))
      return false;
    if (n->inputs[0] != p[0]->inputs[0] || !n->inputs[1]->is_constant()) return false;
    if ((n->input(2) == nullptr) != (p[0]->input(2) == nullptr)) return false;
    if (n->output()->type.dtype != p[0]->output()->type.dtype || n->has("float_reason"))
      return false;
    if (n->inputs[1]->type.dtype != p[0]->inputs[1]->type.dtype) return false;
    if (n->op == linear_q::op &&
        !(same_parameter(n->input(linear_q::x_scale), p[0]->input(linear_q::x_scale)) &&
          same_parameter(n->input(linear_q::x_zero_point), p[0]->input(linear_q::x_zero_point))))
      return false;
  }
  return std::set<ir::Node*>(p.begin(), p.end()).size() == p.size();
}

ir::Node* concatenate_linears(ir::Graph& g, std::span<ir::Node* const> linears,
                              std::string_view suffix) {
  const ir::Node& first = *linears[0];
  const bool integer = first.op == linear_q::op;
  const bool quantizes = integer && first.input(linear_q::out_scale);
  const auto concat = [&](std::size_t operand, ir::DType dtype) {
    std::vector<ir::Value*> parts;
    for (ir::Node* p : linears)
      parts.push_back(operand == linear::w ? p->inputs[operand]
                                           : as_one_per_column(g, p->input(operand),
                                                               p->inputs[1]->type.shape[1], dtype));
    return concatenate_constants(g, parts, suffix);
  };
  std::vector<ir::Value*> operands = first.inputs;
  operands[linear::w] = concat(linear::w, first.inputs[1]->type.dtype);
  if (first.input(linear::bias)) operands[linear::bias] = concat(linear::bias, ir::DType::f32);
  if (integer) operands[linear_q::w_scale] = concat(linear_q::w_scale, ir::DType::f32);
  if (quantizes) {
    operands[linear_q::out_scale] = concat(linear_q::out_scale, ir::DType::f32);
    operands[linear_q::out_zero_point] =
        concat(linear_q::out_zero_point, first.output()->type.dtype);
  }
  if (integer && std::ranges::any_of(linears, [](const ir::Node* p) {
        return p->input(linear_q::w_zero_point) != nullptr;
      }))
    set_operand(operands, linear_q::w_zero_point, concat(linear_q::w_zero_point, ir::DType::i8));
  ir::Type type = first.output()->type;
  type.shape.back() = operands[linear::w]->type.shape[1];

  // The last of them in order stands after every operand.
  ir::Node* last = linears[0];
  for (const auto& n : g.nodes())
    if (std::ranges::find(linears, n.get()) != linears.end()) last = n.get();
  ir::Node* made = g.add_node(first.op, operands, first.attributes,
                              {{first.output()->name + std::string(suffix), type}}, last);
  made->sources = sources_of({linears.begin(), linears.end()});
  return made;
}

}  // namespace bertcl::passes
