// SPDX-License-Identifier: Apache-2.0
// Small files that ask for much are refused before the work.
#include <fmt/format.h>

#include "tests/onnx/text_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::failure;

/// Local functions of which each calls the next twice.
onnx::ModelProto doubling(int functions, const std::string& last_op) {
  auto model = tests::model_of(17, R"(
    node { op_type: "f0" domain: "local" input: "x" output: "y" } output { name: "y" })");
  tests::add_value(*model.mutable_graph()->add_input(), "x", 1, {"2"});
  auto* domain = model.add_opset_import();
  domain->set_domain("local");
  domain->set_version(1);
  for (int i = 0; i < functions; ++i) {
    auto& f = *model.add_functions();
    f.set_domain("local");
    f.set_name(fmt::format("f{}", i));
    f.add_input("x");
    f.add_output("y");
    for (const auto& opset : model.opset_import()) *f.add_opset_import() = opset;
    for (const auto& [from, to] : {std::pair{"x", "t"}, std::pair{"t", "y"}}) {
      auto& node = *f.add_node();
      const bool is_last = i + 1 == functions;
      node.set_op_type(is_last ? last_op : fmt::format("f{}", i + 1));
      node.set_domain(is_last ? "" : "local");
      node.add_input(from);
      node.add_output(to);
    }
  }
  return model;
}

TEST(Limits, FunctionsThatCallEachOtherTwice) {
  EXPECT_THAT(failure(doubling(30, "Relu")),
              AllOf(HasSubstr("2147483647 nodes"), HasSubstr("the limit is 500000")));
  EXPECT_EQ(tests::read(doubling(10, "Relu")).node_list().size(), 1024u);
  ReadOptions options;
  options.limits.nodes = 2047;  // with the calls themselves
  EXPECT_EQ(tests::read(doubling(10, "Relu"), options).node_list().size(), 1024u);
  options.limits.nodes = 2046;
  EXPECT_THROW(tests::read(doubling(10, "Relu"), options), Error);
}

TEST(Limits, FunctionsThatCallThemselves) {
  auto model = doubling(3, "Relu");
  for (auto& node : *model.mutable_functions(2)->mutable_node()) {
    node.set_op_type("f0");
    node.set_domain("local");
  }
  EXPECT_THAT(failure(model), HasSubstr("nested too deep"));
}

TEST(Limits, ElementsOfATensor) {
  const auto model = [](const std::string& extent) {
    auto m = tests::model_of(17,
                             "node { op_type: 'Relu' input: 'x' output: 'y' }"
                             " output { name: 'y' }");
    tests::add_value(*m.mutable_graph()->add_input(), "x", 1, {extent, "4096", "n"});
    return m;
  };
  EXPECT_EQ(failure(model("268435456")), kNoError);  // 2^40 with n = 1
  EXPECT_THAT(failure(model("268435457")), AllOf(HasSubstr("'x'"), HasSubstr("more elements")));
  EXPECT_THAT(failure(model("9223372036854775807")), HasSubstr("more elements"));
}

TEST(Limits, ResultsOfNodesCount) {
  auto model = tests::model_of(17, R"(
    initializer { name: "s" dims: 2 data_type: 7 int64_data: [1048576, 1048577] }
    node { op_type: "Expand" input: "x" input: "s" output: "y" } output { name: "y" })");
  tests::add_value(*model.mutable_graph()->add_input(), "x", 1, {"1"});
  EXPECT_THAT(failure(model), AllOf(HasSubstr("'y'"), HasSubstr("more elements")));
}

// Each of them and all their values were looked through for the next.
TEST(Limits, ManyUnusedNodesAreRemoved) {
  auto model = tests::model_of(17,
                               "node { op_type: 'Relu' input: 'x' output: 'y' }"
                               " output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", 1, {"n"});
  for (int i = 0; i < 200'000; ++i) {
    auto& node = *model.mutable_graph()->add_node();
    node.set_op_type(i % 2 ? "Exp" : "Neg");
    node.add_input(i % 3 ? fmt::format("t{}", i - 1) : "x");
    node.add_output(fmt::format("t{}", i));
  }
  ir::Graph graph = tests::read(model);
  EXPECT_TRUE(graph.remove_dead());
  EXPECT_EQ(graph.node_list().size(), 1u);
  EXPECT_FALSE(graph.remove_dead());
}

}  // namespace
}  // namespace bertcl::onnx_io
