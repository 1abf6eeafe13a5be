// SPDX-License-Identifier: Apache-2.0
// Changes of a graph, as passes make them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::passes {

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

/// Adds the nodes that a node of one result becomes: before it, and with its sources.
class Expansion {
 public:
  Expansion(ir::Graph& graph, ir::Node& node) : graph_(graph), node_(node) {}

  ir::Value* operator()(std::string op, std::vector<ir::Value*> inputs, ir::Type type,
                        ir::Attributes attributes = {}) const;
  /// Puts `result` in the place of the node's, and erases the node.
  void finish(ir::Value* result) const;

 private:
  ir::Graph& graph_;
  ir::Node& node_;
};

/// Gives the uses and the name of a value to another.
void replace_uses_and_name(ir::Graph& graph, ir::Value* old, ir::Value* value);

/// Sets an optional operand; missing operands before it become null.
void set_operand(std::vector<ir::Value*>& operands, std::size_t index, ir::Value* value);

/// Calls `rewrite` for each node until none changes the graph any more.
bool rewrite_all(ir::Graph& graph, const std::function<bool(ir::Graph&, ir::Node&)>& rewrite);

/// Such a constant as a vector.
ir::Value* as_vector(ir::Graph& graph, ir::Value* columns);

}  // namespace bertcl::passes
