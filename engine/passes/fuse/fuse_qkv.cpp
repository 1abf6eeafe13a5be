// SPDX-License-Identifier: Apache-2.0
// The three linears before attention become one.
//
//   x -> linear -> q --\                     x -> linear -> qkv[.., 3*hidden]
//   x -> linear -> k --- attention   becomes   attention(qkv, qkv, qkv) {offsets = [0, h, 2h]}
//   x -> linear -> v --+
//
// One launch, and x is read once. Scales become one per column, so q, k and v keep their own. A
// file that has one linear already splits its result, which attention reads in place:
//
//   qkv -> Split -> q, k, v -> attention   becomes   attention(qkv, qkv, qkv) {offsets = [0, h,
//   2h]}
#include <algorithm>
#include <array>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

using Three = std::array<ir::Node*, 3>;

/// Columns of three [K, N] or [N] constants side by side.
ir::Value* concatenate(ir::Graph& g, const std::array<ir::Value*, 3>& parts) {
  return g.add_constant(
      parts[0]->name + ".qkv",
      ir::Tensor::concat(parts[0]->constant->dtype(),
                         {*parts[0]->constant, *parts[1]->constant, *parts[2]->constant}));
}

/// A scale or zero point as one element per column; null (zero point 0) becomes zeros.
ir::Value* per_column(ir::Graph& g, ir::Value* v, ir::Dim columns, ir::DType dtype) {
  const ir::Sizes shape{columns.constant()};
  if (!v) return g.add_constant("zero_point", ir::Tensor::zeros(dtype, shape));
  if (v->constant->shape() == shape) return v;
  const double value = v->constant->to_doubles().front();
  std::vector<double> all(static_cast<std::size_t>(shape[0]), value);
  return g.add_constant(v->name, ir::Tensor::of(shape, std::move(all)).converted(dtype));
}

/// The same value, or constants of one element that are equal; an absent zero point is 0.
bool same_parameter(const ir::Value* a, const ir::Value* b) {
  if (a == b) return true;
  const auto x = a ? scalar_value(a) : 0, y = b ? scalar_value(b) : 0;
  return x && y && *x == *y;
}

bool same_kind(const Three& p) {
  for (const ir::Node* n : p) {
    if (n->op != p[0]->op || !ops::traits(*n).takes_activation || n->has("activation"))
      return false;
    if (n->inputs[0] != p[0]->inputs[0] || !n->inputs[1]->is_constant()) return false;
    if ((n->input(2) == nullptr) != (p[0]->input(2) == nullptr)) return false;
    if (n->output()->type.dtype != p[0]->output()->type.dtype || n->has("float_reason"))
      return false;
    if (n->inputs[1]->type.dtype != p[0]->inputs[1]->type.dtype) return false;
    if (n->op == "linear_q" &&
        !(same_parameter(n->input(linear_q::x_scale), p[0]->input(linear_q::x_scale)) &&
          same_parameter(n->input(linear_q::x_zero_point), p[0]->input(linear_q::x_zero_point))))
      return false;
  }
  return p[0] != p[1] && p[1] != p[2] && p[0] != p[2];
}

/// The columns of `part` among those that Split takes apart along the last axis; -1 if it does not.
std::int64_t first_column(const ir::Value* part) {
  const ir::Node& split = *part->producer;
  const auto rank = static_cast<std::int64_t>(part->type.shape.size());
  const std::int64_t axis = split.int_attribute("axis", 0);
  if (axis != -1 && axis != rank - 1) return -1;
  std::int64_t column = 0;
  for (const ir::Value* v : split.outputs) {
    if (v == part) return column;
    if (!v->type.shape.back().is_constant()) return -1;
    column += v->type.shape.back().constant();
  }
  return -1;
}

/// The operands of attention are parts of one value.
bool read_in_place(ir::Graph& g, ir::Node& node) {
  if (!ops::traits(node).mixes_tokens || node.has("offsets")) return false;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Node* split = node.inputs[i]->producer;
    if (!split || split->op != "Split" || split != node.inputs[0]->producer) return false;
    offsets.push_back(first_column(node.inputs[i]));
    if (offsets.back() < 0) return false;
  }
  ir::Value* whole = node.inputs[0]->producer->inputs[0];
  if (!whole->type.shape.back().is_constant()) return false;
  for (std::size_t i = 0; i < 3; ++i) g.set_input(&node, i, whole);
  node.attributes["offsets"] = offsets;
  return true;
}

bool fuse_qkv_at(ir::Graph& g, ir::Node& node) {
  if (!ops::traits(node).mixes_tokens || node.has("offsets")) return false;
  Three linears{};
  for (std::size_t i = 0; i < 3; ++i) {
    linears[i] = node.inputs[i]->producer;
    if (!linears[i] || node.inputs[i]->users.size() != 1 || g.is_output(node.inputs[i]))
      return false;
  }
  if (!same_kind(linears)) return false;
  const ir::Node& first = *linears[0];
  const bool integer = first.op == "linear_q";
  const bool quantizes = integer && first.input(linear_q::out_scale);

  const auto concat = [&](std::size_t operand, ir::DType dtype) {
    std::array<ir::Value*, 3> parts{};
    for (std::size_t i = 0; i < 3; ++i) {
      ir::Node& p = *linears[i];
      parts[i] = operand == linear::w
                     ? p.inputs[operand]
                     : per_column(g, p.input(operand), p.inputs[1]->type.shape[1], dtype);
    }
    return concatenate(g, parts);
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
  if (integer && std::any_of(linears.begin(), linears.end(), [](const ir::Node* p) {
        return p->input(linear_q::w_zero_point) != nullptr;
      })) {
    operands.resize(linear_q::w_zero_point + 1, nullptr);
    operands[linear_q::w_zero_point] = concat(linear_q::w_zero_point, ir::DType::i8);
  }
  ir::Type type = first.output()->type;
  type.shape.back() = operands[linear::w]->type.shape[1];

  // The last of the three in order stands after every operand.
  ir::Node* last = linears[0];
  for (const auto& n : g.nodes())
    if (n.get() == linears[1] || n.get() == linears[2]) last = n.get();
  ir::Node* made = g.add_node(first.op, operands, first.attributes,
                              {{first.output()->name + ".qkv", type}}, last);
  Match m;
  m.nodes = {linears[0], linears[1], linears[2]};
  made->sources = m.sources();
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 0; i < 2; ++i)
    offsets.push_back(offsets.back() + linears[i]->inputs[1]->type.shape[1].constant());
  for (std::size_t i = 0; i < 3; ++i) g.set_input(&node, i, made->output());
  node.attributes["offsets"] = offsets;
  return true;
}

}  // namespace

Pass fuse_qkv() {
  return {"fuse_qkv", [](ir::Graph& g) {
            return rewrite_all(g, [](ir::Graph& graph, ir::Node& node) {
              return read_in_place(graph, node) || fuse_qkv_at(graph, node);
            });
          }};
}

}  // namespace bertcl::passes
