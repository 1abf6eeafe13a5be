// SPDX-License-Identifier: Apache-2.0
// Patterns over the graph that read like the expression they match:
//
//   const Pattern x = any("x");
//   const Pattern gelu =
//       op("Mul", {op("Mul", {x, op("Add", {op("Erf", {...}), scalar(1)})}), scalar(0.5)});
//
// Add and Mul match their operands in either order. A name that occurs twice must match the same
// value both times.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// What the names in a pattern stand for, and the nodes that the pattern covers.
struct Match {
  std::map<std::string, ir::Value*, std::less<>> values;
  std::map<std::string, double, std::less<>> numbers;
  std::vector<ir::Node*> nodes;

  ir::Value* operator[](std::string_view name) const {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : it->second;
  }
  double number(std::string_view name) const { return numbers.find(name)->second; }
};

using Pattern = std::function<bool(ir::Value*, Match&)>;

/// Any value, remembered under `name`.
Pattern any(std::string name);
/// Any constant, remembered under `name`.
Pattern constant(std::string name);
/// A constant all of whose elements equal `value` within a relative 1e-3.
Pattern scalar(double value);
/// A float or integer constant of one element, remembered in Match::numbers.
Pattern scalar(std::string name);
/// Result 0 of a node `name` whose first operands match, two of Add or Mul in either order; further
/// operands must be absent.
Pattern op(std::string name, std::vector<Pattern> operands);
/// The same, with the result remembered under `result`.
Pattern op(std::string name, std::vector<Pattern> operands, std::string result);
/// The first of several patterns that matches.
Pattern one_of(std::vector<Pattern> alternatives);

/// Tries the pattern on a value.
bool matches(const Pattern& pattern, ir::Value* value, Match& match);

}  // namespace bertcl::passes
