// SPDX-License-Identifier: Apache-2.0
// Files with fused operators are quantized: tables of ranges, and what the report tells.
#include <map>
#include <string>

#include "quant/graph/expand_fused.hpp"
#include "quant/quantizer.hpp"
#include "quant/writing/dynamic.hpp"
#include "tests/quant/fused_graph.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

Fused two_layers_and_a_matmul() {
  Fused f = two_layers();
  const std::string y = f.builder().graph().output(0).name();
  f.builder().graph().mutable_output(0)->set_name("out");
  f.node("MatMul", {y, f.weight("w", {6, 6})}, "out", "");
  return f;
}

class ExpandInFile : public testing::Test {
 protected:
  /// Options to quantize the model of `f`.
  Options options_of(Fused& f) const {
    Options options;
    options.model = folder_ / "m.onnx";
    options.output = folder_ / "q.onnx";
    f.model().save(options.model);
    return options;
  }

  const bertcl::tests::ScratchFolder folder_;
};

TEST_F(ExpandInFile, TablesOfOtherProgramsDoNotKnowWhatIsInside) {
  Fused f = two_layers_and_a_matmul();
  const Options options = options_of(f);
  ScaleTable table;
  table.ranges["x"] = {-1.0f, 1.0f};
  for (const std::string layer : {"0", "1"})
    table.ranges["/encoder/layer." + layer + "/attention/self/Reshape_3_output_0"] = {-1.0f, 1.0f};
  Report report = quantize_with_table(options, table);
  EXPECT_EQ(report.expanded_nodes, 0);
  EXPECT_EQ(report.quantized_nodes, 1);

  Model model = f.model();
  for (const std::string& tensor : expand_fused(model).tensors)
    table.ranges[tensor] = {-1.0f, 1.0f};
  report = quantize_with_table(options, table);
  EXPECT_EQ(report.expanded_nodes, 2);
  EXPECT_EQ(report.quantized_nodes, 11);
}

// Its MatMul reads the operands of FusedMatMul, and its result is not quantized.
TEST_F(ExpandInFile, ATableNamesTheOperandsOfFusedMatMuls) {
  Fused f(3);
  f.input("x", {2, 6, 6});
  f.node("MatMul", {"x", f.weight("w", {6, 6})}, "y", "");
  f.node("FusedMatMul", {"x", "y"}, "z").set("alpha", 0.5f);
  f.name("/layer/MatMul/MatMulScaleFusion/");
  f.builder().output("z");
  Options options = options_of(f);
  ScaleTable table;
  table.ranges["x"] = {-1.0f, 1.0f};
  EXPECT_EQ(quantize_with_table(options, table).quantized_nodes, 1) << "of another program";
  table.ranges["y"] = {-1.0f, 1.0f};
  EXPECT_EQ(quantize_with_table(options, table).quantized_nodes, 2);
  options.placement.exclude = {"/layer/MatMul"};
  EXPECT_EQ(quantize_with_table(options, table).quantized_nodes, 1);
  options.placement.exclude = {"/layer/MatMul/MatMulScaleFusion/"};
  EXPECT_EQ(quantize_with_table(options, table).expanded_nodes, 0) << "the name of the whole";
}

// Optimizers name tensors anew: a table of the file before it knows some names, or none.
TEST_F(ExpandInFile, ATableOfTheFileBeforeIsRefusedWithTheReason) {
  Fused f = two_layers_and_a_matmul();
  const Options options = options_of(f);
  ScaleTable table;
  table.ranges["x"] = {-1.0f, 1.0f};
  EXPECT_ERROR(
      AllOf(
          HasSubstr(options.model.string()), HasSubstr("'write_table'"),
          HasSubstr("2 fused operators of this file were not expanded, because the table has no")),
      quantize_with_table(options, table));
  Model model = f.model();
  table.ranges[*expand_fused(model).tensors.begin()] = {-1.0f, 1.0f};
  EXPECT_ERROR(HasSubstr("2 fused operators of this file were expanded into MatMuls"),
               quantize_with_table(options, table));
}

TEST_F(ExpandInFile, WhyNothingWasExpandedIsTold) {
  Fused f(1);
  f.input("q", {2, 3, 8});
  for (const char* name : {"k", "v"}) f.input(name, {2, 2, 5, 4});
  f.node("MultiHeadAttention", {"q", "k", "v"}, "y").set("num_heads", 2).output("y");
  EXPECT_ERROR(AllOf(HasSubstr("nothing to quantize"), HasSubstr("'y_node'"),
                     HasSubstr("MultiHeadAttention was not expanded: its keys and values")),
               quantize_dynamic(options_of(f), ActivationScales::per_tensor));
}

TEST_F(ExpandInFile, TheReportTellsBoth) {
  Fused f = two_layers();
  f.input("k", {2, 2, 4, 3}, {"batch", "", "", ""});
  const std::string y = f.builder().graph().output(0).name();
  f.builder().graph().mutable_output(0)->set_name("out");
  f.node("MultiHeadAttention", {y, "k", "k"}, "out").set("num_heads", 2);
  const Report report = quantize_dynamic(options_of(f), ActivationScales::per_tensor);
  EXPECT_EQ(report.expanded_nodes, 2);
  EXPECT_EQ(report.quantized_nodes, 6);
  std::map<std::string, std::string> reasons;
  for (const SkippedNode& node : report.skipped) reasons[node.node] = node.reason;
  EXPECT_EQ(
      reasons["out_node"],
      "MultiHeadAttention was not expanded: its keys and values are already split into heads");
  EXPECT_THAT(reasons, Contains(Key("/encoder/layer.0/attention/self/MatMul")));
}

}  // namespace
}  // namespace bertcl::quant::tests
