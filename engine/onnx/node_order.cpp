// SPDX-License-Identifier: Apache-2.0
// The order of the nodes of a graph.
#include "onnx/node_order.hpp"

#include <map>
#include <set>
#include <string_view>

namespace bertcl::onnx_io {
namespace {

/// The names that a node reads, its bodies' included, except what these make themselves.
std::vector<std::string_view> read_by(const onnx::NodeProto& node) {
  std::vector<std::string_view> names(node.input().begin(), node.input().end());
  const auto add = [&](const onnx::GraphProto& body) {
    std::set<std::string_view> own;
    for (const auto& in : body.input()) own.insert(in.name());
    for (const auto& constant : body.initializer()) own.insert(constant.name());
    for (const auto& inner : body.node()) own.insert(inner.output().begin(), inner.output().end());
    const auto read = [&](std::string_view name) {
      if (!own.contains(name)) names.push_back(name);
    };
    for (const auto& inner : body.node())
      for (const std::string_view name : read_by(inner)) read(name);
    for (const auto& out : body.output()) read(out.name());
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add(attribute.g());
    for (const auto& body : attribute.graphs()) add(body);
  }
  return names;
}

}  // namespace

std::vector<const onnx::NodeProto*> sorted(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  std::map<std::string_view, const onnx::NodeProto*> makers;
  for (const auto& node : nodes)
    for (const auto& out : node.output())
      if (!out.empty()) makers.emplace(out, &node);
  std::vector<const onnx::NodeProto*> order;
  std::set<const onnx::NodeProto*> entered, done;
  for (const auto& root : nodes) {
    std::vector<const onnx::NodeProto*> stack{&root};
    while (!stack.empty()) {
      const onnx::NodeProto* node = stack.back();
      if (done.contains(node)) {
        stack.pop_back();
        continue;
      }
      const std::size_t before = stack.size();
      if (entered.insert(node).second)
        for (const std::string_view in : read_by(*node))
          if (const auto it = makers.find(in); it != makers.end() && !entered.contains(it->second))
            stack.push_back(it->second);
      if (stack.size() > before) continue;
      stack.pop_back();
      done.insert(node);
      order.push_back(node);
    }
  }
  return order;
}

}  // namespace bertcl::onnx_io
