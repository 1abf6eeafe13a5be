// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX Runtime as nodes of ONNX, and any part of it as a graph of the engine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "onnx/proto.hpp"
#include "onnx/read_model.hpp"
#include "onnxruntime_ep/ort.hpp"

namespace bertcl::onnxruntime_ep {

struct Node {
  const OrtNode* node = nullptr;
  onnx::NodeProto proto;
  std::string refusal;  // why it cannot be taken; empty: it may be

  /// As ir::SourceNode::name: the node's name, else that of its first result.
  const std::string& name() const {
    return proto.name().empty() && proto.output_size() > 0 ? proto.output(0) : proto.name();
  }
};

/// Nodes by their places in Graph::nodes, ascending.
using NodeSet = std::vector<std::size_t>;

/// Valid during the call that ONNX Runtime gave the graph to.
class Graph {
 public:
  /// Nodes that are not part of ONNX's text (subgraphs, other providers' nodes), or whose operator
  /// or types the importer does not know, have a refusal.
  Graph(const Ort& ort, const OrtGraph* graph);

  /// True if a node uses a value of the graph around this one.
  bool is_branch() const { return is_branch_; }
  /// The nodes in topological order.
  const std::vector<Node>& nodes() const { return nodes_; }
  NodeSet all() const;
  /// Gives a refusal to the nodes of `part` with one of these names. False: there are none.
  bool refuse(const NodeSet& part, const std::vector<std::string>& names, const std::string& why);
  bool is_constant(const std::string& value) const { return constants_.contains(value); }
  /// Results of the part that others use, or the graph gives.
  std::vector<std::string> outputs_of(const NodeSet& part) const;
  /// Throws Error where the importer does not take it. `copy`: constants do not refer to the
  /// memory of ONNX Runtime.
  ir::Graph import(const NodeSet& part, bool copy, onnx_io::ReadOptions options = {}) const;

 private:
  std::string note(const OrtValueInfo* value);
  Node read_node(const OrtNode* node);
  void check_types(const onnx::NodeProto& node) const;
  void read_attribute(const OrtOpAttr* attribute, onnx::NodeProto& proto) const;
  std::vector<std::string> users(const NodeSet& part, const std::string& value) const;
  std::map<std::string, std::string> unknown_extents(const ir::Graph& part) const;

  const Ort& ort_;
  bool is_branch_ = false;
  std::vector<Node> nodes_;
  onnx::ModelProto head_;                              // versions of operators
  std::map<std::string, const OrtValueInfo*> values_;  // by name
  std::map<std::string, const OrtValue*> constants_;   // likewise
  std::set<std::string> outputs_;
  std::set<std::string> results_;  // of the nodes
};

/// Type and extents.
std::pair<int, std::vector<std::int64_t>> type_of(const Ort& ort,
                                                  const OrtTensorTypeAndShapeInfo* info);
/// The bytes of a tensor in host memory.
std::span<const std::byte> bytes_of(const Ort& ort, const OrtValue* value);

}  // namespace bertcl::onnxruntime_ep
