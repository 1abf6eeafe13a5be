// SPDX-License-Identifier: Apache-2.0
// The model that is changed: raised to a later opset, and written with all that it needs.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bertcl/error.hpp"
#include "quant/graph/opset.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

class Opset : public testing::Test {
 protected:
  static Model raised(GraphBuilder g, std::optional<std::size_t> rank = std::nullopt) {
    Model m = Model::of(std::move(g.model()), "test.onnx");
    const ir::Type type{ir::DType::f32, ir::Shape(rank.value_or(0), ir::Dim(1))};
    raise_opset(m, [&](const std::string&) { return rank ? &type : nullptr; });
    return m;
  }
};

TEST_F(Opset, AttributesBecomeInputs) {
  GraphBuilder g(11, 6);
  g.input("x", {1, 2, 4});
  g.node("Unsqueeze", {"x"}, "u", {{"axes", {0, 2}}});
  g.node("Squeeze", {"u"}, "s", {{"axes", {0}}});
  g.node("Squeeze", {"s"}, "all");
  g.node("ReduceSum", {"s"}, "r", {{"axes", {-1}}, {"keepdims", 0}});
  g.node("Split", {"x"}, "left");
  g.graph().mutable_node()->rbegin()->add_output("right");
  g.set("axis", -1).set("split", std::vector<std::int64_t>{1, 3});
  g.output("r");
  Model m = raised(std::move(g));
  EXPECT_EQ(opset_of(m.proto()), 13);
  EXPECT_EQ(m.proto().ir_version(), 7);
  const auto axes = [&](const std::string& made) {
    const auto& n = *producer(m.graph(), made);
    EXPECT_EQ(find_attribute(n, "axes"), nullptr);
    return m.read(n.input(1)).to_ints();
  };
  EXPECT_THAT(axes("u"), ElementsAre(0, 2));
  EXPECT_THAT(axes("s"), ElementsAre(0));
  EXPECT_THAT(axes("r"), ElementsAre(-1));
  EXPECT_EQ(int_attribute(*producer(m.graph(), "r"), "keepdims", 9), 0);
  EXPECT_EQ(producer(m.graph(), "all")->input_size(), 1);
  EXPECT_THAT(axes("left"), ElementsAre(1, 3));
  EXPECT_EQ(int_attribute(*producer(m.graph(), "left"), "axis", 9), -1);
}

GraphBuilder softmax(std::optional<std::int64_t> axis) {
  GraphBuilder g(12);
  g.input("x");
  g.node("Softmax", {"x"}, "y");
  if (axis) g.set("axis", *axis);
  g.output("y");
  return g;
}

TEST_F(Opset, SoftmaxOverTheLastAxis) {
  for (const auto& [axis, rank] :
       std::vector<std::pair<std::optional<std::int64_t>, std::optional<std::size_t>>>{
           {-1, std::nullopt}, {3, 4}, {std::nullopt, 2}}) {
    const Model m = raised(softmax(axis), rank);
    EXPECT_EQ(int_attribute(*find_node(m.graph(), "Softmax"), "axis", 9), -1);
  }
  EXPECT_ERROR(HasSubstr("'y_node'"), raised(softmax(std::nullopt), 4));
  EXPECT_ERROR(HasSubstr("unknown rank"), raised(softmax(3), std::nullopt));
}

TEST_F(Opset, OlderForms) {
  GraphBuilder g(9, 3);
  g.input("x", {2, 4});
  g.weight("w", {1}, {1});
  g.input("w", {1});  // IR version 3 lists initializers as inputs
  g.node("Slice", {"x"}, "s", {{"starts", {0}}, {"ends", {2}}, {"axes", {1}}});
  g.node("Clip", {"s"}, "c", {{"max", 6.0f}});
  g.node("Dropout", {"c"}, "d", {{"ratio", 0.1f}});
  g.output("d");
  Model m = raised(std::move(g));
  EXPECT_EQ(m.graph().input_size(), 1);
  const auto& slice = *producer(m.graph(), "s");
  ASSERT_EQ(slice.input_size(), 4);
  EXPECT_THAT(m.read(slice.input(3)).to_ints(), ElementsAre(1));
  EXPECT_THAT(m.read(producer(m.graph(), "c")->input(2)).to_doubles(), ElementsAre(6.0));
  EXPECT_EQ(find_node(m.graph(), "Dropout")->attribute_size(), 0);
}

/// Without raising them, an initializer that is added would have to be an input, too.
TEST_F(Opset, OldIrVersionsAreRaisedAtAnyOpset) {
  for (const std::int64_t opset : {13, 14, 17}) {
    GraphBuilder g(opset, 3);
    g.input("x", {2, 4});
    g.weight("w", {1}, {1});
    g.input("w", {1});
    g.node("BatchNormalization", {"x", "w", "w", "w", "w"}, "y");
    g.output("y");
    const Model m = raised(std::move(g));
    EXPECT_EQ(m.graph().input_size(), 1) << opset;
    EXPECT_GE(m.proto().ir_version(), 7) << opset;
    EXPECT_EQ(opset_of(m.proto()), opset);
  }
}

TEST_F(Opset, RefusesWhatItCannotRaise) {
  GraphBuilder g(9);
  g.node("Upsample", {g.input("x")}, "y");
  EXPECT_ERROR(AllOf(HasSubstr("'y_node'"), HasSubstr("Upsample")), raised(g));
  EXPECT_ERROR(HasSubstr("opset 8"), raised(GraphBuilder(8)));
  GraphBuilder newest(21);
  newest.node("Upsample", {newest.input("x")}, "y");
  EXPECT_EQ(opset_of(raised(newest).proto()), 21);
}

/// The local function own.F of the standard operators of an opset.
void add_function(GraphBuilder& g, std::int64_t opset, const std::string& nodes) {
  auto* function = g.model().add_functions();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: 'F' domain: 'own' input: 'a' output: 'r' " + nodes, function));
  function->add_opset_import()->set_version(opset);
  auto* own = g.model().add_opset_import();
  own->set_domain("own");
  own->set_version(1);
}

TEST_F(Opset, LocalFunctionsGoWithTheModel) {
  const auto with = [](std::int64_t opset, const std::string& nodes) {
    GraphBuilder g(11);
    g.node("F", {g.input("x", {2})}, "y");
    g.graph().mutable_node(0)->set_domain("own");
    g.output("y");
    add_function(g, opset, nodes);
    return raised(std::move(g));
  };
  const std::string relu = "node { op_type: 'Relu' input: 'a' output: 'r' }";
  EXPECT_EQ(with(11, relu).proto().functions(0).opset_import(0).version(), 13);
  EXPECT_EQ(with(17, relu).proto().functions(0).opset_import(0).version(), 17);
  // It cannot read an initializer of the model, which the axes would become.
  EXPECT_ERROR(HasSubstr("'lift' (Unsqueeze) of a local function cannot be upgraded"),
               with(11,
                    "node { op_type: 'Unsqueeze' name: 'lift' input: 'a' output: 'r' attribute { "
                    "name: 'axes' type: INTS ints: 0 } }"));
}

class Save : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& f : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(f.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  const bertcl::tests::ScratchFolder folder_;
};

/// x MatMul halves, after Cast.
GraphBuilder half_matmul() {
  GraphBuilder g;
  g.half_weight("w1_half", {4, 1}, {1, 2, 3, -8});
  g.node("Cast", {"w1_half"}, "w1", {{"to", 1}});
  g.node("MatMul", {g.input("x", {2, 4}), "w1"}, "y");
  g.output("y");
  return g;
}

TEST_F(Save, InlineAndExternalHoldTheSame) {
  GraphBuilder g = half_matmul();
  std::vector<float> large(1000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i);
  g.weight("large", {1000}, large);
  g.weight("larger", {2, 1000}, std::vector<float>(2000, 0.5f));
  {
    std::ofstream file(folder_ / "source.onnx", std::ios::binary);
    ASSERT_TRUE(g.model().SerializeToOstream(&file));
  }
  Model::load(folder_ / "source.onnx").save(folder_ / "inline.onnx");
  const auto written = Model::load(folder_ / "inline.onnx").save(folder_ / "apart.onnx", 100);
  EXPECT_THAT(files(), ElementsAre("apart.onnx", "apart.onnx.data", "inline.onnx", "source.onnx"));
  EXPECT_EQ(written,
            static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "apart.onnx") +
                                      std::filesystem::file_size(folder_ / "apart.onnx.data")));
  EXPECT_LT(std::filesystem::file_size(folder_ / "apart.onnx"), 3000u);
  // Back to one file, from the external data.
  Model::load(folder_ / "apart.onnx").save(folder_ / "back.onnx");
  for (const char* name : {"inline.onnx", "apart.onnx", "back.onnx"}) {
    Model m = Model::load(folder_ / name);
    EXPECT_EQ(m.read("large"), ir::Tensor::of<float>({1000}, large)) << name;
    EXPECT_EQ(m.read("w1_half").dtype(), ir::DType::f16) << name;
    EXPECT_EQ(m.graph().node_size(), 2) << name;
  }
}

TEST_F(Save, ExternalDataOfAttributesBranchesAndFunctionsComesAlong) {
  std::filesystem::create_directory(folder_ / "source");
  {
    const float values[] = {1, 2, 3, 4};
    std::ofstream file(folder_ / "source" / "t.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(values), sizeof(values));
  }
  const std::string tensor =
      "{ name: 'b' data_type: 1 dims: 2 data_location: EXTERNAL external_data { key: 'location' "
      "value: 't.bin' } external_data { key: 'offset' value: '8' } external_data { key: 'length' "
      "value: '8' } }";
  const std::string constant =
      "op_type: 'Constant' output: 'r' attribute { name: 'value' type: TENSOR t " + tensor + " }";
  GraphBuilder g;
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "node { " + constant +
          " } node { op_type: 'If' input: 'c' output: 'y' attribute { name: 'then_branch' type: "
          "GRAPH g { initializer " +
          tensor +
          " output { name: 'b' } } } attribute { name: 'else_branch' type: GRAPH g { node { " +
          constant + " } output { name: 'r' } } } }",
      &g.graph()));
  add_function(g, 17, "node { " + constant + " }");
  {
    std::ofstream file(folder_ / "source" / "m.onnx", std::ios::binary);
    ASSERT_TRUE(g.model().SerializeToOstream(&file));
  }
  Model::load(folder_ / "source" / "m.onnx").save(folder_ / "q.onnx");
  std::filesystem::remove_all(folder_ / "source");
  const Model m = Model::load(folder_ / "q.onnx");
  const auto& branches = m.graph().node(1).attribute();
  for (const onnx::TensorProto* t :
       {&m.graph().node(0).attribute(0).t(), &branches[0].g().initializer(0),
        &branches[1].g().node(0).attribute(0).t(),
        &m.proto().functions(0).node(0).attribute(0).t()})
    EXPECT_EQ(m.read(*t), ir::Tensor::of<float>({2}, {3, 4}));
}

TEST_F(Save, LeavesNothingWhereItFails) {
  Model m = Model::of(std::move(half_matmul().model()), "test.onnx");
  EXPECT_THROW(m.save(folder_ / "absent" / "q.onnx"), Error);
  std::filesystem::create_directory(folder_ / "taken.onnx");  // cannot be renamed onto
  EXPECT_THROW(m.save(folder_ / "taken.onnx"), Error);
  EXPECT_THROW(m.save(folder_ / "taken.onnx", 0), Error);
  EXPECT_THAT(files(), ElementsAre("taken.onnx"));
  EXPECT_THROW(m.save("/proc/q.onnx"), Error);
}

class Load : public Save {};

TEST_F(Load, NamesWeightsBeyondAnyMemory) {
  GraphBuilder g;
  auto* weight = g.graph().add_initializer();
  weight->set_name("w");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(std::int64_t{1} << 61);
  const Model model = Model::of(g.model(), "test.onnx");
  EXPECT_ERROR(HasSubstr("tensor 'w' is too large"), model.weight_bytes());
  EXPECT_ERROR(HasSubstr("tensor 'w' is too large"), model.weight_bytes_as_f32());
}

TEST_F(Load, NamesWhatIsNoModel) {
  try {
    Model::load("/absent/m.onnx");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/absent/m.onnx: no such file"));
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
  EXPECT_ERROR(HasSubstr("not an ONNX"), Model::load(bertcl::tests::source_file("README.md")));
  std::ofstream(folder_ / "empty.onnx").close();
  EXPECT_ERROR(HasSubstr("the file is empty"), Model::load(folder_ / "empty.onnx"));
}

}  // namespace
}  // namespace bertcl::quant::tests
