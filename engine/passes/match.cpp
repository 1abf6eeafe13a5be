// SPDX-License-Identifier: Apache-2.0
// Backtracking matcher of the pattern expressions.
#include "passes/match.hpp"

#include <algorithm>
#include <cmath>

#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool is_commutative(std::string_view op) { return op == "Add" || op == "Mul"; }

bool bind(Match& m, const std::string& name, ir::Value* value) {
  if (name.empty()) return true;
  const auto [it, added] = m.values.emplace(name, value);
  return added || it->second == value;
}

/// Runs the patterns over the operands in the given order; `m` is untouched on failure.
bool match_operands(const std::vector<Pattern>& patterns, const std::vector<ir::Value*>& operands,
                    Match& m) {
  Match attempt = m;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!operands[i] || !patterns[i](operands[i], attempt)) return false;
  m = std::move(attempt);
  return true;
}

}  // namespace

bool is_quantization(const ir::Node& node) {
  return ir::is_any_of(node, {"QuantizeLinear", "DequantizeLinear"});
}

std::vector<std::string> sources_of(const std::vector<ir::Node*>& nodes) {
  std::vector<std::string> all;
  for (const ir::Node* n : nodes)
    for (const std::string& s : n->sources)
      if (std::ranges::find(all, s) == all.end()) all.push_back(s);
  return all;
}

Pattern any(std::string name) {
  return [name = std::move(name)](ir::Value* v, Match& m) { return bind(m, name, v); };
}

Pattern constant(std::string name) {
  return [name = std::move(name)](ir::Value* v, Match& m) {
    return v->is_constant() && bind(m, name, v);
  };
}

Pattern scalar(double value) {
  return [value](ir::Value* v, Match&) {
    if (!v->is_constant() || v->constant->size() == 0 || v->constant->size() > 64) return false;
    const auto all = v->constant->to_doubles();
    const bool is_exact = 2.0 * value == std::round(2.0 * value);  // in half precision, too
    const double most = (is_exact ? 1e-5 : 1e-3) * std::abs(value);
    return std::ranges::all_of(all, [&](double d) { return std::abs(d - value) <= most; });
  };
}

Pattern scalar(std::string name) {
  return [name = std::move(name)](ir::Value* v, Match& m) {
    const auto number = scalar_value(v);
    if (!number) return false;
    const auto [it, added] = m.numbers.emplace(name, *number);
    return added || it->second == *number;
  };
}

Pattern op(std::string name, std::vector<Pattern> operands) {
  return op(std::move(name), std::move(operands), "");
}

Pattern op(std::string name, std::vector<Pattern> operands, std::string result) {
  return [name = std::move(name), operands = std::move(operands), result = std::move(result)](
             ir::Value* v, Match& m) {
    ir::Node* node = v->producer;
    if (!node || node->op != name || node->outputs.front() != v) return false;
    if (node->inputs.size() < operands.size()) return false;
    for (std::size_t i = operands.size(); i < node->inputs.size(); ++i)
      if (node->inputs[i]) return false;
    Match attempt = m;
    bool found = match_operands(operands, node->inputs, attempt);
    if (!found && is_commutative(name) && operands.size() == 2) {
      attempt = m;
      found = match_operands(operands, {node->inputs[1], node->inputs[0]}, attempt);
    }
    if (!found || !bind(attempt, result, v)) return false;
    attempt.nodes.push_back(node);
    m = std::move(attempt);
    return true;
  };
}

Pattern one_of(std::vector<Pattern> alternatives) {
  return [alternatives = std::move(alternatives)](ir::Value* v, Match& m) {
    for (const Pattern& p : alternatives) {
      Match attempt = m;
      if (!p(v, attempt)) continue;
      m = std::move(attempt);
      return true;
    }
    return false;
  };
}

bool matches(const Pattern& pattern, ir::Value* value, Match& match) {
  Match attempt;
  if (!pattern(value, attempt)) return false;
  match = std::move(attempt);
  return true;
}

ir::Node* replace(ir::Graph& graph, ir::Node* node, const std::vector<ir::Node*>& covered,
                  std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes) {
  ir::Node* made = graph.add_node(std::move(op), std::move(inputs), std::move(attributes),
                                  {{node->output()->name, node->output()->type}}, node);
  made->sources = sources_of(covered);
  replace_uses_and_name(graph, node->output(), made->output());
  return made;
}

ir::Value* add_like(ir::Graph& graph, const ir::Node& like, std::vector<ir::Value*> inputs,
                    ir::Type type, ir::Node* before, std::string_view name) {
  ir::Value* made =
      graph.add(like.op, std::move(inputs), like.attributes, std::move(type), before, name);
  made->producer->sources = like.sources;
  return made;
}

void replace_uses_and_name(ir::Graph& graph, ir::Value* old, ir::Value* value) {
  graph.replace_uses(old, value);
  graph.swap_names(old, value);
}

void set_operand(std::vector<ir::Value*>& operands, std::size_t index, ir::Value* value) {
  if (operands.size() <= index) operands.resize(index + 1, nullptr);
  operands[index] = value;
}

bool rewrite_all(ir::Graph& graph, const std::function<bool(ir::Graph&, ir::Node&)>& rewrite) {
  bool any_change = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (ir::Node* node : graph.node_list()) {
      if (!graph.contains(node)) continue;
      if (rewrite(graph, *node)) changed = true;
    }
    if (changed) graph.remove_dead();
    any_change |= changed;
  }
  return any_change;
}

Pass rewriting(std::string name, std::function<bool(ir::Graph&, ir::Node&)> rewrite) {
  return {std::move(name),
          [rewrite = std::move(rewrite)](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

bool is_last_axis(const ir::Node& node, std::int64_t default_value, const ir::Shape& shape) {
  const std::int64_t axis = node.int_attribute("axis", default_value);
  return axis == -1 || axis == std::ssize(shape) - 1;
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
         is_last_axis(norm, -1, type.shape) && norm.input(1) && is_vector(norm.inputs[1]) &&
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

ir::Value* as_vector(ir::Graph& graph, ir::Value* columns) {
  if (columns->type.shape.size() == 1) return columns;
  return graph.add_constant(columns->name,
                            columns->constant->reshaped({columns->constant->size()}));
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
