// SPDX-License-Identifier: Apache-2.0
// The loss at the end of graphs that were exported from training.
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

/// com.microsoft::SoftmaxCrossEntropyLossInternal(scores [rows, classes], labels [rows], weights,
/// ignore_index): the mean of -log(softmax(scores)) at the labels, and the logarithms.
void import_cross_entropy(NodeImport& node) {
  ir::Value *scores = node.input(0), *labels = node.input(1);
  if (node.optional_input(2)) node.fail("class weights are not supported");
  if (node.string_attribute("reduction", "mean") != "mean")
    node.fail("a reduction other than 'mean' is not supported");
  if (scores->type.shape.size() != 2 || labels->type.shape.size() != 1)
    node.fail("scores are {} and labels {}, expected a matrix and a vector", ir::str(scores->type),
              ir::str(labels->type));
  const ir::Dim rows = scores->type.shape[0], classes = scores->type.shape[1];
  const ir::DType real = scores->type.dtype, id = labels->type.dtype;
  ir::Value* logs = node.emit("LogSoftmax", {scores}, {{"axis", 1}});
  ir::Value* ids = node.range(classes, id);
  ir::Value* column = node.emit("Unsqueeze", {labels}, {{"axes", std::vector<std::int64_t>{1}}});
  ir::Value* is_label = node.emit("Equal", {column, ids});
  const ir::Attributes by_row{{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 0}};
  const ir::Attributes all{{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}};
  ir::Value* picked = node.emit("Where", {is_label, logs, node.scalar(0, real)});
  ir::Value* at_label = node.emit("ReduceSum", {picked}, by_row);
  ir::Value* counts = node.emit_typed("Expand", {node.scalar(1, real)}, {real, {rows}});
  if (ir::Value* ignored = node.optional_input(3)) {
    ir::Value* keep = node.emit("Not", {node.emit("Equal", {labels, ignored})});
    counts = node.cast(keep, real);
    at_label = node.mul(at_label, counts);
  }
  ir::Value* sum = node.emit("Neg", {node.emit("ReduceSum", {at_label}, all)});
  node.set_output(0, node.emit("Div", {sum, node.emit("ReduceSum", {counts}, all)}));
  node.set_output(1, logs);
}

}  // namespace

Rules loss_rules() {
  return {{"com.microsoft::SoftmaxCrossEntropyLossInternal",
           {import_cross_entropy, {"reduction", "output_type"}}}};
}

}  // namespace bertcl::onnx_io
