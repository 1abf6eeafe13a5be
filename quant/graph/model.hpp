// SPDX-License-Identifier: Apache-2.0
// An ONNX model to read, change and write: the message, with its weights kept separately.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/graph.hpp"
#include "ir/tensor.hpp"
#include "onnx/proto.hpp"
#include "onnx/tensors.hpp"
#include "runtime/session.hpp"
#include "support/written_files.hpp"

namespace bertcl::quant {

/// The version of ONNX's own operators that a model imports. Throws Error if there is none.
std::int64_t opset_of(const onnx::ModelProto& model);

/// The attribute of that name, or null.
const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);
std::int64_t int_attribute(const onnx::NodeProto& node, std::string_view name,
                           std::int64_t default_value);

float float_attribute(const onnx::NodeProto& node, std::string_view name, float default_value);

/// Removes the elements of a repeated field for which `drop(element)` is true.
template <class Field, class Drop>
void erase_if(Field& field, const Drop& drop) {
  field.erase(std::remove_if(field.begin(), field.end(), drop), field.end());
}

/// True for the operator of ONNX's own domain.
bool is_op(const onnx::NodeProto& node, std::string_view op);

/// A node for messages and patterns.
using onnx_io::label_of;

/// Calls `visit(graph)` for the graphs that a node holds: branches of If, bodies of loops.
template <class Node, class Visit>
void for_each_branch(Node& node, const Visit& visit) {
  if constexpr (std::is_const_v<Node>) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) visit(attribute.g());
      for (const auto& graph : attribute.graphs()) visit(graph);
    }
  } else {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit(*attribute.mutable_g());
      for (auto& graph : *attribute.mutable_graphs()) visit(graph);
    }
  }
}

/// The same for a graph and all graphs inside it.
template <class Graph, class Visit>
void for_each_graph(Graph& graph, const Visit& visit) {
  visit(graph);
  const auto inner = [&](auto& branch) { for_each_graph(branch, visit); };
  if constexpr (std::is_const_v<Graph>) {
    for (const auto& node : graph.node()) for_each_branch(node, inner);
  } else {
    for (auto& node : *graph.mutable_node()) for_each_branch(node, inner);
  }
}

/// The type of a tensor of the main graph, null where it is not known.
using TypeOf = std::function<const ir::Type*(const std::string& tensor)>;

/// A model with its weights in the mapped file: quantizing needs no second copy of them.
class Model {
 public:
  /// Throws Error naming the file if it cannot be read or is not an ONNX model.
  static Model load(const std::filesystem::path& path);
  /// Takes over a message that carries its weights itself; `name` is for messages.
  static Model of(onnx::ModelProto proto, std::string name);
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  /// Another model with the same message and weights, which share their memory.
  Model copy() const;
  /// The model as a graph; throws Error as onnx_io::read_model().
  ir::Graph import() const;
  /// The model on a device, without a file.
  runtime::Session session(const runtime::SessionOptions& options) const;
  /// The same for a graph that import() returned.
  runtime::Session session(ir::Graph graph, const runtime::SessionOptions& options) const;

  const std::filesystem::path& path() const { return path_; }
  onnx::ModelProto& proto() { return proto_; }
  const onnx::ModelProto& proto() const { return proto_; }
  const onnx::GraphProto& graph() const { return proto_.graph(); }

  /// The initializer of that name in the main graph, or null.
  const onnx::TensorProto* initializer(const std::string& name) const;
  /// Its values. Throws Error if there is none or it cannot be read.
  ir::Tensor read(const std::string& name) const;
  /// Any tensor message outside the list of initializers, such as a Constant's value.
  ir::Tensor read(const onnx::TensorProto& tensor) const;

  /// Adds an initializer; the tensor's bytes are shared until the model is written. Returns `name`.
  std::string add(const std::string& name, const ir::Tensor& values);
  /// Removes the initializers of these names, also from the graph's inputs.
  void remove(const std::set<std::string>& names);
  /// A name that no tensor or node has, near `wanted`; it is taken from now on.
  std::string fresh_name(const std::string& wanted);

  /// Bytes of all initializers, and what those of float type would take as f32.
  std::int64_t weight_bytes() const;
  std::int64_t weight_bytes_as_f32() const;

  /// Writes the model whole or not at all. Where the weights exceed `inline_limit` bytes, those of
  /// 1 KiB and more go to PATH.data beside it. Throws Error. Returns the bytes written.
  std::int64_t save(const std::filesystem::path& path, std::int64_t inline_limit = kInlineLimit);
  /// The same among `files`, whose commit() gives the model its name.
  std::int64_t add_to(WrittenFiles& files, const std::filesystem::path& path,
                      std::int64_t inline_limit = kInlineLimit);

 private:
  static constexpr std::int64_t kInlineLimit =
      (std::int64_t{1} << 31) - (1 << 26);  // protobuf ends at 2 GiB

  Model() = default;
  Model(const Model&) = default;
  void index();
  std::span<const std::byte> bytes_of(const onnx::TensorProto& tensor) const;
  /// Takes external data into the message: those of attributes and branches stay there.
  void take_in(onnx::TensorProto& tensor) const;
  void take_in(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) const;
  void take_in(onnx::GraphProto& branch) const;

  std::filesystem::path path_;
  onnx::ModelProto proto_;
  std::shared_ptr<onnx_io::TensorReader> reader_;
  std::map<std::string, int> initializers_;                // index in the graph
  std::map<std::string, std::span<const std::byte>> raw_;  // taken out of the message
  std::map<std::string, ir::Tensor> added_;                // made here, or external data
  std::set<std::string> names_;
};

}  // namespace bertcl::quant
