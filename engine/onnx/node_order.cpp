// SPDX-License-Identifier: Apache-2.0
// The order of the nodes of a graph.
#include "onnx/node_order.hpp"

#include <map>
#include <set>
#include <string_view>

namespace bertcl::onnx_io {

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
        for (const auto& in : node->input())
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
