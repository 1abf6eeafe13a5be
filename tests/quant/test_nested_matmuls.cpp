// SPDX-License-Identifier: Apache-2.0
// MatMuls in functions and in graphs inside nodes are reported.
#include "quant/placement/nested_matmuls.hpp"
#include "quant/quantizer.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

/// A function of x and w with the nodes of `body`.
void define_function(GraphBuilder& g, const std::string& name, GraphBuilder body) {
  auto& function = *g.model().add_functions();
  function.set_name(name);
  function.set_domain("local");
  *function.add_opset_import() = g.model().opset_import(0);
  function.add_input("x");
  function.add_input("w");
  function.add_output("y");
  *function.mutable_node() = body.graph().node();
}

void call(GraphBuilder& g, const std::string& function, const std::vector<std::string>& inputs,
          const std::string& output) {
  g.node(function, inputs, output);
  g.graph().mutable_node(g.graph().node_size() - 1)->set_domain("local");
}

GraphBuilder matmul(const std::string& output) {
  GraphBuilder g;
  g.node("MatMul", {"x", "w"}, output);
  return g;
}

/// x -> Layer -> Layer -> y
GraphBuilder layers() {
  GraphBuilder g;
  g.model().add_opset_import()->set_domain("local");
  g.model().mutable_opset_import(1)->set_version(1);
  define_function(g, "Layer", matmul("y"));
  g.weight("w", {4, 4}, std::vector<float>(16, 0.5f));
  call(g, "Layer", {g.input("x", {2, 4}), "w"}, "h");
  call(g, "Layer", {"h", "w"}, "y");
  return g;
}

TEST(NestedMatMuls, OfFunctionsThatAreCalledAreNamedOnce) {
  GraphBuilder g = layers();
  GraphBuilder outer;
  call(outer, "Layer", {"x", "w"}, "y");
  define_function(g, "Outer", outer);
  define_function(g, "Unused", matmul("y"));
  call(g, "Outer", {"y", "w"}, "z");
  EXPECT_THAT(
      nested_matmuls(g.model()),
      ElementsAre(AllOf(Field(&SkippedNode::node, "y_node"), Field(&SkippedNode::op, "MatMul"),
                        Field(&SkippedNode::reason, HasSubstr("inside function 'Layer'")))));
}

TEST(NestedMatMuls, OfBranches) {
  GraphBuilder g;
  g.node("MatMul", {"x", "w"}, "outside");
  g.node("If", {"yes"}, "result");
  auto& node = *g.graph().mutable_node(g.graph().node_size() - 1);
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = matmul(branch).graph();
  }
  const auto inside =
      Field(&SkippedNode::reason, HasSubstr("inside a graph of node 'result_node' (If)"));
  EXPECT_THAT(nested_matmuls(g.model()),
              ElementsAre(AllOf(Field(&SkippedNode::node, "then_branch_node"), inside),
                          AllOf(Field(&SkippedNode::node, "else_branch_node"), inside)));
}

TEST(NestedMatMuls, AreInTheReportOrTheRefusal) {
  const bertcl::tests::ScratchFolder folder;
  Options options;
  options.model = folder / "m.onnx";
  options.output = folder / "q.onnx";
  GraphBuilder g = layers();
  g.output("y", {2, 4});
  Model::of(g.model(), "m").save(options.model);
  EXPECT_ERROR(AllOf(HasSubstr("nothing to quantize"), HasSubstr("inside function 'Layer'")),
               quantize_dynamic(options));
  g.node("MatMul", {"y", g.weight("v", {4, 2}, std::vector<float>(8, 0.5f))}, "head");
  g.output("head", {2, 2});
  Model::of(g.model(), "m").save(options.model);
  const Report report = quantize_dynamic(options);
  EXPECT_EQ(report.quantized_nodes, 1);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_THAT(report.skipped[0].reason, HasSubstr("inside function 'Layer'"));
}

}  // namespace
}  // namespace bertcl::quant::tests
