// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl inspect --html`: complete, self-contained, and safe whatever names a file
// has.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "onnx/proto.hpp"
#include "page_checks.hpp"
#include "program_runner.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"
#include "tools/report/model_report.hpp"

namespace bertcl::tests {
namespace {

using ReportPageTest = FolderTest;

TEST_F(ReportPageTest, ShowsEveryLaunchAndNeedsNothingFromElsewhere) {
  const std::string model = source_file("models/minilm-l6-squad/model.onnx");
  succeeded(run_bertcl(
      {"inspect", model, "--html", path("r.html"), "--json", path("r.json"), "--seq", "16"}));
  const std::string page = read(path("r.html"));
  expect_page(page);
  const nlohmann::json report = read_json(path("r.json"));
  std::size_t launches = 0;
  for (const auto& layer : report.at("layers")) launches += layer.at("launches").size();
  EXPECT_EQ(launches, report.at("ops").size());
  for (const auto& op : report.at("ops"))
    EXPECT_THAT(page, HasSubstr(op.at("name").get<std::string>()));
  EXPECT_EQ(count(page, "class=\"op\""), report.at("ops").size());
  EXPECT_THAT(page, HasSubstr("it is a float model"));
  EXPECT_EQ(report.at("layers").size(), 8u) << "embeddings, six layers, head";
  EXPECT_EQ(report.at("nodes").size(), report.at("source_nodes").at("total"));
}

// Of two ways to compute the same, only the one of this size.
TEST_F(ReportPageTest, LaunchesThatDoNotRunAreNotCounted) {
  succeeded(run_bertcl({"inspect", source_file("models/minilm-l6-squad/model.onnx"), "--json",
                        path("r.json"), "--seq", "16"}));
  const std::string text = read(path("r.json"));
  const auto without = [&](bool runs) {
    nlohmann::ordered_json report = nlohmann::ordered_json::parse(text);
    auto& ops = report["ops"];
    const auto found = std::find_if(ops.begin(), ops.end(), [](const auto& op) {
      return op.at("op") == "linear" && op.at("layer") == "layer 0";
    });
    nlohmann::ordered_json other = *found;
    other["operations"] = 1e15;
    other["runs"] = runs;
    report["layers"][1]["launches"].push_back(ops.size());
    ops.push_back(std::move(other));
    std::vector<plan::Step> steps(ops.size());
    steps.back().type = plan::Arithmetic::int8;
    return tools::inspect_page(report, steps);
  };
  const nlohmann::ordered_json report = nlohmann::ordered_json::parse(text);
  const std::string page =
      tools::inspect_page(report, std::vector<plan::Step>(report.at("ops").size()));
  EXPECT_EQ(without(false), page);
  EXPECT_NE(without(true), page);
}

TEST_F(ReportPageTest, ANormThatWritesBf16IsArithmeticInFp32) {
  const std::string model = source_file("models/minilm-l6-squad/model.onnx");
  succeeded(run_bertcl({"inspect", model, "--precision", "bf16", "--html", path("r.html"), "--json",
                        path("r.json")}));
  const nlohmann::json report = read_json(path("r.json"));
  const auto& ops = report.at("ops");
  if (std::none_of(ops.begin(), ops.end(), [](const auto& op) { return op.at("type") == "bf16"; }))
    GTEST_SKIP() << "this device has no avx512_bf16";
  EXPECT_THAT(read(path("r.html")), HasSubstr("<i class=\"dot fp32\"></i>fp32 &gt; bf16"));
}

TEST_F(ReportPageTest, AModelWithoutMatMulsHasNoArithmetic) {
  quant::tests::GraphBuilder g;
  g.input("x", {4});
  g.node("Relu", {"x"}, "y");
  g.output("y", {4});
  succeeded(run_bertcl(
      {"inspect", write("m.onnx", g.model().SerializeAsString()), "--html", path("r.html")}));
  EXPECT_EQ(count(read(path("r.html")), ">none<"), 2u) << "arithmetic, and weights";
}

TEST_F(ReportPageTest, NamesAreText) {
  const std::string hostile = "</td><script>alert('x')</script>&\"{{path}}\x01";
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto describe = [](onnx::ValueInfoProto& value, const std::string& name) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(4);
  };
  describe(*graph.add_input(), "x");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Relu");
  node.set_name(hostile);
  node.add_input("x");
  node.add_output(hostile + " result");
  describe(*graph.add_output(), hostile + " result");
  succeeded(run_bertcl(
      {"inspect", write("hostile.onnx", model.SerializeAsString()), "--html", path("r.html")}));
  const std::string page = read(path("r.html"));
  expect_well_formed(page);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert("));
  EXPECT_THAT(page, HasSubstr("{{path}}")) << "the text of a name is not part of the template";
  EXPECT_EQ(page.find('\x01'), std::string::npos);
}

TEST_F(ReportPageTest, AFolderThatIsAbsentIsNamedFirst) {
  expect_refused({"inspect", "absent.onnx", "--html", path("none/r.html")}, {"none"});
}

}  // namespace
}  // namespace bertcl::tests
