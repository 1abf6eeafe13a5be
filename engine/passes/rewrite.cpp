// SPDX-License-Identifier: Apache-2.0
// Nodes replaced and added, with names and sources kept.
#include "passes/rewrite.hpp"

#include <algorithm>
#include <utility>

#include "passes/pass.hpp"

namespace bertcl::passes {

std::vector<std::string> sources_of(const std::vector<ir::Node*>& nodes) {
  std::vector<std::string> all;
  for (const ir::Node* n : nodes)
    for (const std::string& s : n->sources)
      if (std::ranges::find(all, s) == all.end()) all.push_back(s);
  return all;
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

ir::Value* Expansion::operator()(std::string op, std::vector<ir::Value*> inputs, ir::Type type,
                                 ir::Attributes attributes) const {
  ir::Value* v =
      graph_.add(std::move(op), std::move(inputs), std::move(attributes), std::move(type), &node_);
  v->producer->sources = node_.sources;
  return v;
}

void Expansion::finish(ir::Value* result) const {
  replace_uses_and_name(graph_, node_.output(), result);
  graph_.erase(&node_);
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

ir::Value* as_vector(ir::Graph& graph, ir::Value* columns) {
  if (columns->type.shape.size() == 1) return columns;
  return graph.add_constant(columns->name,
                            columns->constant->reshaped({columns->constant->size()}));
}

}  // namespace bertcl::passes
