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
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

/// QuantizeLinear or DequantizeLinear.
bool is_quantization(const ir::Node& node);

/// Names of the ONNX nodes that the nodes come from.
std::vector<std::string> sources_of(const std::vector<ir::Node*>& nodes);

/// Replaces the result of `node` by one result of a new node put in its place, which takes over the
/// type of the old result and the sources of the `covered` nodes.
ir::Node* replace(ir::Graph& graph, ir::Node* node, const std::vector<ir::Node*>& covered,
                  std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {});

/// Adds a node before `before` that is one like `like`, with its attributes and sources, of other
/// operands.
ir::Value* add_like(ir::Graph& graph, const ir::Node& like, std::vector<ir::Value*> inputs,
                    ir::Type type, ir::Node* before, std::string_view name = {});

/// Gives the uses and the name of a value to another.
void replace_uses_and_name(ir::Graph& graph, ir::Value* old, ir::Value* value);

/// Sets an optional operand; missing operands before it become null.
void set_operand(std::vector<ir::Value*>& operands, std::size_t index, ir::Value* value);

/// Calls `rewrite` for each node until none changes the graph any more.
bool rewrite_all(ir::Graph& graph, const std::function<bool(ir::Graph&, ir::Node&)>& rewrite);

/// True if {axis} is the last one of that shape.
bool is_last_axis(const ir::Node& node, std::int64_t default_value, const ir::Shape& shape);

/// True if ReduceMean, or another reduction, is one over the last axis alone, which it keeps.
bool reduces_last_axis(const ir::Node& reduction);

/// True if a LayerNormalization or RMSNormalization is one of f32 over the last axis with constant
/// vectors of its size.
bool normalizes_last_axis(const ir::Node& norm);

/// True for the shape [batch, seq, ...], where `ids` is [batch, seq].
bool has_rows(const ir::Shape& shape, const ir::Shape& ids);

/// True if an input of the graph may hold ids of tokens or their mask: integers [batch, seq].
bool takes_tokens(const ir::Graph& graph);

/// The node that alone reads `value`; null if there are several or the graph returns it.
ir::Node* only_user(const ir::Graph& graph, const ir::Value* value);

/// True if `node` comes before `other` in the graph.
bool comes_before(const ir::Graph& graph, const ir::Node* node, const ir::Node* other);

/// A value times a number.
struct Scaled {
  ir::Value* x;
  double factor;
};

/// What x * c, c * x or x / c scales without repeating it; empty for any other node.
std::optional<Scaled> scaled(const ir::Node& node);

/// The node Where(IsNaN(p), 0, p), which torch writes after Softmax so that rows without any key
/// give 0; null where there is none.
ir::Node* without_nan(const ir::Value* p);

/// True for a constant with one element for each of `columns`: a vector, also with leading ones.
bool is_column_constant(const ir::Value* value, const ir::Dim& columns);

/// Such a constant as a vector.
ir::Value* as_vector(ir::Graph& graph, ir::Value* columns);

/// The number in a constant of one element; empty for anything else.
std::optional<double> scalar_value(const ir::Value* value);

/// The only element of an attribute, or else of a constant operand; empty for anything else.
std::optional<std::int64_t> only_integer(const ir::Node& node, std::string_view key,
                                         std::size_t operand);

}  // namespace bertcl::passes
