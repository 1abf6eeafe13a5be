// SPDX-License-Identifier: Apache-2.0
// The float model to quantize, read once, and the device for its samples, opened once.
#include "quant/graph/workspace.hpp"

#include <algorithm>
#include <utility>

#include "onnx/node_order.hpp"
#include "onnx/read_model.hpp"

namespace bertcl::quant {
namespace {

/// Reads a model. Each node of the main graph stands after what it reads, as the quantizer needs it
/// and ONNX asks for.
Model load(const std::filesystem::path& path) {
  Model model = Model::load(path);
  auto& nodes = *model.proto().mutable_graph()->mutable_node();
  const auto order = onnx_io::sorted(nodes);
  if (std::equal(order.begin(), order.end(), nodes.pointer_begin())) return model;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
  for (const onnx::NodeProto* node : order) *sorted.Add() = *node;
  nodes.Swap(&sorted);
  return model;
}

}  // namespace

Workspace::Workspace(const std::filesystem::path& model, FusedOperators fused)
    : model_(load(model)),
      weight_files_(onnx_io::external_files(model_.proto(), model)),
      expanded_(fused == FusedOperators::expanded ? expand_fused(model_) : Expanded{}),
      source_{opset_of(model_.proto()), model_.weight_bytes(), model_.weight_bytes_as_f32()} {}

Workspace::Workspace(const std::filesystem::path& model, opencl::ContextFuture device)
    : Workspace(model) {
  device_ = std::move(device);
}

void Workspace::replace(Model model) {
  model_ = std::move(model);
  graph_.reset();
}

const ir::Type* Workspace::type_of(const std::string& tensor) const {
  if (!graph_) graph_ = model_.import();
  const ir::Value* value = graph_->find_value(tensor);
  return value ? &value->type : nullptr;
}

runtime::Session Workspace::session(const std::set<std::string>& tensors,
                                    const std::function<void()>& building) const {
  runtime::SessionOptions options;
  options.context = device_;
  options.observe = {tensors.begin(), tensors.end()};
  if (building) options.on_program = [&](std::size_t, std::size_t) { building(); };
  return model_.session(options);
}

}  // namespace bertcl::quant
