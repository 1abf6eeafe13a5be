// SPDX-License-Identifier: Apache-2.0
// Reductions and searches.
#include <algorithm>

#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

/// What the operator does to each element before it joins them, as ONNX Runtime has it.
void import_reduction_of_nothing(NodeImport& node) {
  const std::string& op = node.proto().op_type();
  ir::Value* x = node.input(0);
  if (op == "ReduceSumSquare") return node.emit_outputs("Mul", {x, x});
  node.emit_outputs(op == "ReduceL1" || op == "ReduceL2" ? "Abs" : "Identity", {x});
}

/// Axes become an attribute, sorted and counted from the start; without them all are reduced.
void import_reduce(NodeImport& node) {
  auto axes = node.ints_attribute("axes");
  if (!axes) axes = node.constant_ints(1);
  if ((!axes || axes->empty()) && node.int_attribute("noop_with_empty_axes", 0))
    return import_reduction_of_nothing(node);
  ir::Attributes attributes{{"keepdims", node.int_attribute("keepdims", 1)}};
  if (axes && !axes->empty()) {
    for (std::int64_t& axis : *axes)
      if (axis < 0) axis += std::ssize(node.shape(0));
    std::sort(axes->begin(), axes->end());
    attributes["axes"] = *axes;
  }
  node.emit_outputs(node.proto().op_type(), {node.input(0)}, std::move(attributes));
}

}  // namespace

Rules reduce_rules() {
  Rules rules;
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                         "ReduceL1", "ReduceL2", "ReduceSumSquare"})
    rules[op] = {import_reduce, {"axes", "keepdims", "noop_with_empty_axes"}};
  rules["ArgMax"] = {import_same, {"axis", "keepdims", "select_last_index"}};
  rules["ArgMin"] = rules["ArgMax"];
  return rules;
}

}  // namespace bertcl::onnx_io
