// SPDX-License-Identifier: Apache-2.0
// Operators on shapes, constants and positions, and If with a known condition.
#include <fmt/format.h>

#include <algorithm>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

void import_constant(NodeImport& node) {
  if (node.proto().attribute_size() != 1) node.fail("exactly one value attribute is needed");
  const auto& a = node.proto().attribute(0);
  const auto name = a.name();
  ir::Tensor tensor;
  const auto vector = [](const auto& list) {
    using T = std::decay_t<decltype(list[0])>;
    using Element = std::conditional_t<std::is_floating_point_v<T>, float, std::int64_t>;
    return ir::Tensor::of<Element>({list.size()}, std::vector<Element>(list.begin(), list.end()));
  };
  if (name == "value")
    tensor = node.importer().read_tensor(a.t());
  else if (name == "value_float")
    tensor = ir::Tensor::scalar(a.f());
  else if (name == "value_int")
    tensor = ir::Tensor::scalar<std::int64_t>(a.i());
  else if (name == "value_floats")
    tensor = vector(a.floats());
  else
    tensor = vector(a.ints());
  if (node.proto().output_size() < 1) node.fail("the node has no output");
  const std::int32_t type = name == "value" ? a.t().data_type() : 0;
  node.set_output(0, node.importer().add_constant(node.proto().output(0), type, std::move(tensor)));
}

/// ConstantOfShape is the Expand of its value.
void import_constant_of_shape(NodeImport& node) {
  ir::Tensor value = ir::Tensor::scalar(0.0f);
  if (const auto* a = node.attribute("value")) {
    element_type(a->t().data_type(), "attribute 'value'");
    value = node.importer().read_tensor(a->t());
  }
  if (value.size() != 1) node.fail("attribute 'value' must be a tensor of one element");
  node.emit_outputs("Expand", {node.constant(value.reshaped({}), "value"), node.input(0)});
}

/// Axes of Squeeze and Unsqueeze: an attribute before opset 13, then operand 1.
void import_axes(NodeImport& node) {
  auto axes = node.ints_attribute("axes");
  if (!axes) axes = node.constant_ints(1);
  const bool unsqueeze = node.proto().op_type() == "Unsqueeze";
  if (!axes && unsqueeze) node.fail("the axes are missing");
  ir::Attributes attributes;
  if (axes) {
    const auto rank =
        static_cast<std::int64_t>(node.shape(0).size() + (unsqueeze ? axes->size() : 0));
    for (std::int64_t& axis : *axes)
      if (axis < 0) axis += rank;
    std::sort(axes->begin(), axes->end());
    attributes["axes"] = *axes;
  }
  node.emit_outputs(node.proto().op_type(), {node.input(0)}, std::move(attributes));
}

/// An If whose condition is known is the branch it takes.
void import_if(NodeImport& node) {
  const auto condition = node.importer().values().constants(node.input(0));
  if (!condition || condition->size() != 1)
    node.fail("data-dependent control flow is not supported: the condition '" +
              node.input(0)->name + "' is not constant");
  const auto* branch = node.attribute(condition->front() ? "then_branch" : "else_branch");
  if (!branch) node.fail("a branch is missing");
  const auto results = node.importer().inline_branch(branch->g());
  for (std::size_t i = 0; i < results.size(); ++i) node.set_output(i, results[i]);
}

void import_cum_sum(NodeImport& node) {
  node.emit_outputs("CumSum", {node.input(0), node.input(1)},
                    {{"exclusive", node.int_attribute("exclusive", 0)},
                     {"reverse", node.int_attribute("reverse", 0)}});
}

void import_gather(NodeImport& node) {
  const auto rank = std::ssize(node.shape(0));
  const std::int64_t axis = node.int_attribute("axis", 0);
  node.emit_outputs(node.proto().op_type(), {node.input(0), node.input(1)},
                    {{"axis", axis < 0 ? axis + rank : axis}});
}

}  // namespace

Rules shape_rules() {
  return {
      {"Constant",
       {import_constant, {"value", "value_float", "value_int", "value_floats", "value_ints"}}},
      {"ConstantOfShape", {import_constant_of_shape, {"value"}}},
      {"Shape", {import_same, {"start", "end"}}},
      {"Size", {import_same, {}}},
      {"Reshape", {import_same, {"allowzero"}}},
      {"Expand", {import_same, {}}},
      {"Range", {import_same, {}}},
      {"Squeeze", {import_axes, {"axes"}}},
      {"Unsqueeze", {import_axes, {"axes"}}},
      {"Flatten", {import_same, {"axis"}}},
      {"Gather", {import_gather, {"axis"}}},
      {"GatherElements", {import_gather, {"axis"}}},
      {"GatherND", {import_same, {"batch_dims"}}},
      {"OneHot", {import_same, {"axis"}}},
      {"NonZero", {import_same, {}}},
      {"CumSum", {import_cum_sum, {"exclusive", "reverse"}}},
      {"Trilu", {import_same, {"upper"}}},
      {"If", {import_if, {"then_branch", "else_branch"}}},
  };
}

}  // namespace bertcl::onnx_io
