// SPDX-License-Identifier: Apache-2.0
// The host interpreter.
#include "ops/interpret.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "ops/op.hpp"

namespace bertcl::ops {
namespace {

class Interpreter {
 public:
  Interpreter(Known known, ir::Bindings bindings)
      : known_(std::move(known)), bindings_(std::move(bindings)) {
    std::map<std::string_view, const ir::Value*> by_name;  // so that messages do not vary
    for (const auto& [value, tensor] : known_) by_name[value->name] = value;
    for (const auto& [name, value] : by_name) check(value, known_.at(value), "given tensors");
  }

  const ir::Tensor& get(const ir::Value* value) const {
    if (value->is_constant()) return *value->constant;
    const auto it = known_.find(value);
    if (it == known_.end()) throw Error(fmt::format("the value '{}' is missing", value->name));
    return it->second;
  }
  bool has(const ir::Value* value) const { return value->is_constant() || known_.contains(value); }

  void run(const ir::Node& node) {
    EvaluateContext context{{node}, {}, bindings_};
    for (const ir::Value* in : node.inputs) context.inputs.push_back(in ? &get(in) : nullptr);
    const auto results = ops::get(node).evaluate(context);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      check(node.outputs[i], results.at(i), node.describe());
      known_.insert_or_assign(node.outputs[i], results[i]);
    }
  }

 private:
  void check(const ir::Value* value, const ir::Tensor& tensor, const std::string& where) {
    if (tensor.dtype() == value->type.dtype && bind(value->type.shape, tensor.shape(), bindings_))
      return;
    throw Error(fmt::format("{}: '{}' is declared {} but is {}[{}]{}", where, value->name,
                            ir::str(value->type), ir::name_of(tensor.dtype()),
                            fmt::join(tensor.shape(), ", "), symbols()));
  }
  std::string symbols() const {
    std::vector<std::string> parts;
    for (const auto& [name, size] : bindings_) parts.push_back(fmt::format("{} = {}", name, size));
    return parts.empty() ? "" : fmt::format(" where {}", fmt::join(parts, ", "));
  }

  Known known_;
  ir::Bindings bindings_;
};

}  // namespace

bool bind(const ir::Shape& shape, const ir::Sizes& sizes, ir::Bindings& bindings) {
  if (shape.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    ir::Dim rest = shape[i];  // what is left when known symbols are divided out
    std::int64_t size = sizes[i];
    std::vector<std::string> open;
    std::int64_t known = 1;
    for (const std::string& s : shape[i].symbols()) {
      rest = *ir::Dim::divide(rest, ir::Dim::symbol(s));
      const auto it = bindings.find(s);
      if (it == bindings.end())
        open.push_back(s);
      else
        known *= it->second;
    }
    known *= rest.constant();
    if (open.size() > 1) continue;  // a product of unknowns says nothing yet
    if (open.empty()) {
      if (known != size) return false;
    } else if (known != 0) {
      if (size % known != 0) return false;
      bindings[open.front()] = size / known;
    }
  }
  return true;
}

std::vector<ir::Tensor> interpret(const ir::Graph& graph, const Tensors& inputs) {
  Known known;
  for (const auto& [name, tensor] : inputs) {
    const ir::Value* value = graph.find_value(name);
    if (!value ||
        std::find(graph.inputs().begin(), graph.inputs().end(), value) == graph.inputs().end())
      throw Error(fmt::format("the graph '{}' has no input '{}'", graph.name, name));
    known.emplace(value, tensor);
  }
  Interpreter interpreter(std::move(known), {});
  for (const auto& node : graph.nodes()) interpreter.run(*node);
  std::vector<ir::Tensor> results;
  for (const ir::GraphOutput& out : graph.outputs()) results.push_back(interpreter.get(out.value));
  return results;
}

ir::Tensor evaluate_subgraph(const ir::Value* wanted, Known known, ir::Bindings bindings) {
  Interpreter interpreter(std::move(known), std::move(bindings));
  // Depth first without recursion: exported graphs are chains of thousands of nodes.
  std::vector<const ir::Value*> stack{wanted};
  while (!stack.empty()) {
    const ir::Value* value = stack.back();
    if (interpreter.has(value)) {
      stack.pop_back();
      continue;
    }
    if (!value->producer) interpreter.get(value);  // throws: it is an input that was not given
    const std::size_t before = stack.size();
    for (const ir::Value* in : value->producer->inputs)
      if (in && !interpreter.has(in)) stack.push_back(in);
    if (stack.size() == before) {
      interpreter.run(*value->producer);
      stack.pop_back();
    }
  }
  return interpreter.get(wanted);
}

std::vector<ir::Tensor> evaluate_constant(const ir::Node& node) {
  const OpDef* def = find(node.op);
  if (!def) return {};
  const ir::Bindings no_symbols;
  EvaluateContext context{{node}, {}, no_symbols};
  for (const ir::Value* in : node.inputs) {
    if (in && !in->is_constant()) return {};
    context.inputs.push_back(in ? &*in->constant : nullptr);
  }
  for (const ir::Value* out : node.outputs)
    if (!ir::constant_shape(out->type.shape)) return {};
  return def->evaluate(context);
}

}  // namespace bertcl::ops
