// SPDX-License-Identifier: Apache-2.0
// Backtracking matcher of the pattern expressions.
#include "passes/match.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/node_queries.hpp"

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

}  // namespace bertcl::passes
