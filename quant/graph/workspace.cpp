// SPDX-License-Identifier: Apache-2.0
// The float model to quantize, read once, and the device for its samples, opened once.
#include "quant/graph/workspace.hpp"

#include <algorithm>
#include <utility>

#include "ir/copy.hpp"
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
      source_{opset_of(model_.proto()),
              static_cast<std::int64_t>(onnx_io::model_bytes(model, weight_files_)),
              model_.weight_bytes(), model_.weight_bytes_as_f32()} {}

Workspace::Workspace(const std::filesystem::path& model, opencl::ContextFuture device)
    : Workspace(model) {
  device_ = std::move(device);
}

void Workspace::replace(Model model) {
  model_ = std::move(model);
  graph_.reset();
}

const ir::Graph& Workspace::graph() const {
  if (!graph_) graph_ = model_.import();
  return *graph_;
}

const ir::Type* Workspace::type_of(const std::string& tensor) const {
  const ir::Value* value = graph().find_value(tensor);
  return value ? &value->type : nullptr;
}

runtime::Session Workspace::session(runtime::SessionOptions options) const {
  options.context = device_;
  return model_.session(ir::copy(graph()), options);
}

runtime::Session Workspace::session(const std::set<std::string>& tensors,
                                    const std::function<void()>& building) const {
  runtime::SessionOptions options;
  options.observe = {tensors.begin(), tensors.end()};
  if (building) options.on_program = [&](std::size_t, std::size_t) { building(); };
  return session(std::move(options));
}

}  // namespace bertcl::quant
