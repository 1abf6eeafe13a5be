// SPDX-License-Identifier: Apache-2.0
// Adds nodes to an ONNX graph and removes unused ones.
#include "quant/graph/graph_edit.hpp"

#include <set>
#include <utility>

namespace bertcl::quant {
namespace {

std::set<std::string> read_tensors(const onnx::GraphProto& graph) {
  std::set<std::string> read;
  for_each_graph(graph, [&](const onnx::GraphProto& g) {
    for (const auto& n : g.node()) read.insert(n.input().begin(), n.input().end());
    for (const auto& o : g.output()) read.insert(o.name());
  });
  return read;
}

/// Puts nodes after those of an index (-1: in front of all), or in their place.
void splice(Model& model, std::map<int, std::vector<onnx::NodeProto>>& made, bool replaces) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
  auto* nodes = model.proto().mutable_graph()->mutable_node();
  nodes->Swap(&old);
  for (int n = -1; n < old.size(); ++n) {
    const auto it = made.find(n);
    if (n >= 0 && !(replaces && it != made.end())) nodes->Add()->Swap(&old[n]);
    if (it == made.end()) continue;
    for (onnx::NodeProto& one : it->second) nodes->Add()->Swap(&one);
  }
}

}  // namespace

onnx::NodeProto make_node(Model& model, const std::string& op, const std::string& name,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  onnx::NodeProto n;
  n.set_op_type(op);
  n.set_name(model.fresh_name(name));
  for (const auto& input : inputs) n.add_input(input);
  for (const auto& output : outputs) n.add_output(output);
  return n;
}

onnx::NodeProto make_node(Model& model, const std::string& op, const std::string& name,
                          const std::vector<std::string>& inputs) {
  onnx::NodeProto n = make_node(model, op, name, inputs, {});
  n.add_output(model.fresh_name(n.name() + "_output_0"));
  return n;
}

void set_attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}

void set_attribute(onnx::NodeProto& node, const std::string& name,
                   const std::vector<std::int64_t>& values) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  a->mutable_ints()->Add(values.begin(), values.end());
}

onnx::NodeProto make_row_reduction(Model& model, const std::string& op, const std::string& name,
                                   const std::string& input, const std::string& output,
                                   std::string& axes) {
  onnx::NodeProto n = make_node(model, op, name, {input}, {output});
  if (opset_of(model.proto()) >= (op == "ReduceSum" ? 13 : 18)) {
    if (axes.empty())
      axes = model.add(model.fresh_name("row_axes"), ir::Tensor::of<std::int64_t>({1}, {-1}));
    n.add_input(axes);
  } else {
    set_attribute(n, "axes", std::vector<std::int64_t>{-1});
  }
  set_attribute(n, "keepdims", 1);
  return n;
}

void insert_nodes(Model& model, std::map<int, std::vector<onnx::NodeProto>> added) {
  splice(model, added, false);
}

void replace_nodes(Model& model, std::map<int, std::vector<onnx::NodeProto>> replacements) {
  splice(model, replacements, true);
}

void remove_unread(Model& model, const Sources& sources) {
  auto* nodes = model.proto().mutable_graph()->mutable_node();
  std::set<std::string> read = read_tensors(model.graph());
  for (bool changed = true; changed;) {
    changed = false;
    for (int n = nodes->size(); n-- > 0;) {
      const auto& made = (*nodes)[n].output();
      bool dead = true;
      for (const auto& o : made) dead = dead && sources.results.contains(o) && !read.contains(o);
      if (!dead) continue;
      nodes->erase(nodes->begin() + n);
      changed = true;
    }
    if (changed) read = read_tensors(model.graph());
  }
  std::set<std::string> unread;
  for (const auto& name : sources.initializers)
    if (!read.contains(name)) unread.insert(name);
  model.remove(unread);
}

}  // namespace bertcl::quant
