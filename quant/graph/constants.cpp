// SPDX-License-Identifier: Apache-2.0
// Which tensors of an ONNX graph are constants, and their values.
#include "quant/graph/constants.hpp"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ops/infer.hpp"
#include "ops/interpret.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {

bool Constants::contains(const std::string& tensor) {
  if (model_.initializer(tensor)) return true;
  const int producer = index_.producer(tensor);
  if (producer < 0) return false;
  if (const auto it = known_.find(tensor); it != known_.end()) return it->second;
  known_[tensor] = false;  // until it is known: a graph that is wrong may hold a cycle
  const auto& node = index_.node(producer);
  bool constant = is_op(node, "Constant") || node.input_size() > 0;
  for (const auto& input : node.input())
    if (!input.empty() && constant) constant = contains(input);
  // Random numbers and branches are never constants.
  for (const auto& a : node.attribute()) constant = constant && !a.has_g() && a.graphs().empty();
  constant = constant && !node.op_type().starts_with("Random") && !is_op(node, "Multinomial");
  return known_[tensor] = constant;
}

void Constants::collect(const std::string& tensor, Sources& sources) const {
  if (model_.initializer(tensor)) sources.initializers.insert(tensor);
  const int producer = index_.producer(tensor);
  if (producer < 0 || sources.results.contains(tensor)) return;
  const auto& node = index_.node(producer);
  sources.results.insert(node.output().begin(), node.output().end());
  for (const auto& input : node.input()) collect(input, sources);
}

namespace {

std::vector<std::int64_t> ints(const onnx::AttributeProto* attribute) {
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<std::int64_t> reversed_axes(const ir::Tensor& tensor) {
  std::vector<std::int64_t> axes(tensor.shape().size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return axes;
}

/// What the engine makes of an operator and its operands.
ir::Tensor evaluated(const std::string& op, const std::vector<ir::Tensor>& operands,
                     ir::Attributes attributes) {
  ir::Graph graph;
  std::vector<ir::Value*> values;
  for (const ir::Tensor& operand : operands)
    values.push_back(graph.add_constant("operand", operand));
  ir::Node* node = graph.add_node(op, values, std::move(attributes), {{"result", {}}});
  ops::SymbolicValues sizes;
  ops::infer(graph, *node, sizes);
  return ops::evaluate_constant(*node).at(0);
}

}  // namespace

ir::Tensor transposed(const ir::Tensor& from) {
  return evaluated("Transpose", {from}, {{"perm", reversed_axes(from)}});
}

ir::Tensor Constants::value(const std::string& tensor) {
  if (model_.initializer(tensor)) return model_.read(tensor);
  const int producer = index_.producer(tensor);
  if (producer < 0) fail("tensor '{}' is not constant", tensor);
  const auto& node = index_.node(producer);
  try {
    return evaluate(node);
  } catch (const Error& e) {
    fail("node '{}': {}", label_of(node), e.what());
  }
}

ir::Tensor Constants::evaluate(const onnx::NodeProto& node) {
  if (is_op(node, "Constant")) {
    const auto* a = find_attribute(node, "value");
    if (a) return model_.read(a->t());
    if ((a = find_attribute(node, "value_ints"))) {
      const auto values = ints(a);
      return ir::Tensor::of<std::int64_t>({std::ssize(values)}, values);
    }
    if ((a = find_attribute(node, "value_float"))) return ir::Tensor::scalar<float>(a->f());
    throw Error("this form of Constant cannot be evaluated");
  }
  const std::string& op = node.op_type();
  const auto operand = [&](int i) { return value(node.input(i)); };
  if (is_op(node, "Identity")) return operand(0);
  if (is_op(node, "Cast")) {
    const auto to = onnx_io::element_type(static_cast<std::int32_t>(int_attribute(node, "to", 0)),
                                          "attribute 'to'");
    return evaluated(op, {operand(0)}, {{"to", std::string(ir::name_of(to))}});
  }
  if (is_op(node, "Transpose")) {
    const ir::Tensor x = operand(0);
    const auto perm = ints(find_attribute(node, "perm"));
    return evaluated(op, {x}, {{"perm", perm.empty() ? reversed_axes(x) : perm}});
  }
  if (is_op(node, "Reshape"))
    return evaluated(op, {operand(0), operand(1)},
                     {{"allowzero", int_attribute(node, "allowzero", 0)}});
  if (is_op(node, "Squeeze") || is_op(node, "Unsqueeze")) {
    // The axes: an attribute in old operator sets, an operand in new ones.
    const auto axes =
        node.input_size() > 1 ? operand(1).to_ints() : ints(find_attribute(node, "axes"));
    ir::Attributes attributes;
    if (!axes.empty() || is_op(node, "Unsqueeze")) attributes["axes"] = axes;
    return evaluated(op, {operand(0)}, std::move(attributes));
  }
  if (is_op(node, "Mul") || is_op(node, "Div")) {
    const auto factor = [&](int i) {  // halves are computed in f32, as when the model runs
      const ir::Tensor x = operand(i);
      return ir::is_float(x.dtype()) ? x.converted(ir::DType::f32) : x;
    };
    return evaluated(op, {factor(0), factor(1)}, {});
  }
  fail("operator {} before a weight cannot be evaluated; fold the model's constants first",
       node.op_type());
}

ir::Tensor columns(const ir::Tensor& x, std::int64_t from, std::int64_t to) {
  ir::Sizes shape = x.shape();
  const auto width = static_cast<std::size_t>(shape.back());
  shape.back() = to - from;
  ir::Tensor part = ir::Tensor::zeros(x.dtype(), shape);
  const std::size_t element = ir::size_of(x.dtype()), row = width * element;
  const std::size_t start = static_cast<std::size_t>(from) * element;
  const std::size_t size = static_cast<std::size_t>(to - from) * element;
  const auto source = x.bytes();
  const auto target = part.mutable_bytes();
  for (std::size_t r = 0; size > 0 && r * size < target.size(); ++r)
    std::memcpy(&target[r * size], &source[r * row + start], size);
  return part;
}

}  // namespace bertcl::quant
