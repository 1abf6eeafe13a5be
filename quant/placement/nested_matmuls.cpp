// SPDX-License-Identifier: Apache-2.0
// MatMuls that the main graph does not show.
#include "quant/placement/nested_matmuls.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "quant/graph/matmuls.hpp"

namespace bertcl::quant {
namespace {

class Search {
 public:
  explicit Search(const onnx::ModelProto& model) : model_(model) {
    visit(model.graph().node(), "");
  }
  std::vector<SkippedNode> take() { return std::move(found_); }

 private:
  template <class Nodes>
  void visit(const Nodes& nodes, const std::string& reason) {
    for (const onnx::NodeProto& node : nodes) {
      if (!reason.empty() && is_matmul(node))
        found_.push_back({label_of(node), node.op_type(), reason});
      const std::string inside = fmt::format(
          "inside a graph of node '{}' ({}); only those of the main graph are quantized",
          label_of(node), node.op_type());
      for_each_branch(node, [&](const onnx::GraphProto& branch) { visit(branch.node(), inside); });
      visit_function(node);
    }
  }

  /// The one that the node calls, if it does.
  void visit_function(const onnx::NodeProto& node) {
    for (const auto& function : model_.functions())
      if (function.name() == node.op_type() && function.domain() == node.domain() &&
          visited_.insert(&function).second)
        visit(function.node(),
              fmt::format("inside function '{}'; inline functions first (Python: onnx.inliner)",
                          function.name()));
  }

  const onnx::ModelProto& model_;
  std::set<const onnx::FunctionProto*> visited_;
  std::vector<SkippedNode> found_;
};

}  // namespace

std::vector<SkippedNode> nested_matmuls(const onnx::ModelProto& model) {
  return Search(model).take();
}

}  // namespace bertcl::quant
