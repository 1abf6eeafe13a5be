// SPDX-License-Identifier: Apache-2.0
// Copies a graph, so that passes can change the copy.
#include "ir/copy.hpp"

#include <unordered_map>
#include <vector>

namespace bertcl::ir {

Graph copy(const Graph& graph) {
  Graph made;
  made.name = graph.name;
  made.source_nodes = graph.source_nodes;
  made.metadata = graph.metadata;
  std::unordered_map<const Value*, Value*> values{{nullptr, nullptr}};
  for (const Value* input : graph.inputs())
    values[input] = made.add_input(input->name, input->type);
  for (const Value* constant : graph.constants())
    values[constant] = made.add_constant(constant->name, *constant->constant);
  for (const auto& node : graph.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs) inputs.push_back(values.at(input));
    std::vector<Graph::Result> results;
    for (const Value* output : node->outputs) results.push_back({output->name, output->type});
    Node* added = made.add_node(node->op, inputs, node->attributes, results);
    added->sources = node->sources;
    for (std::size_t i = 0; i < node->outputs.size(); ++i)
      values[node->outputs[i]] = added->outputs[i];
  }
  for (const GraphOutput& output : graph.outputs())
    made.add_output(output.name, values.at(output.value));
  for (const auto& [a, b] : graph.assumptions()) made.assume_equal(a, b);
  for (const auto& [size, most] : graph.at_most()) made.assume_at_most(size, most);
  return made;
}

}  // namespace bertcl::ir
