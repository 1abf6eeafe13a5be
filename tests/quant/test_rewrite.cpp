// SPDX-License-Identifier: Apache-2.0
// The Q/DQ graph that is written: structure, names, what goes and what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bertcl/error.hpp"
#include "quant/graph/opset.hpp"
#include "quant/writing/rewrite.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/files.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using tests::Analysed;
using tests::find_node;
using tests::GraphBuilder;
using tests::producer;

/// x (half weights after Cast) -> MatMul -> h; h -> MatMul(w2) -> y; out = y + h.
GraphBuilder two_matmuls() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.half_weight("w1_half", {4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, -8, 7, 6, 5, 4, 3, 2, 0});
  g.node("Cast", {"w1_half"}, "w1");
  g.set("to", std::int64_t{1});
  g.node("MatMul", {"x", "w1"}, "h", true);
  g.node("MatMul", {"h", g.weight("w2", {4, 4}, std::vector<float>(16, 0.25f))}, "y");
  g.node("Add", {"y", "h"}, "out");
  g.weight("spare", {1}, {1});
  g.output("out");
  return g;
}

const Ranges kRanges{{"x", {-1.0f, 1.0f}}, {"h", {-0.1f, 2.7f}}};

void quantize(Analysed& a, Scheme activations = {}, const RewriteOptions& options = {},
              const PlacementOptions& where = {}) {
  Placement p = place(a, where);
  const Encodings e = encode(p, a.index, a.constants, kRanges, {activations, {}});
  rewrite(a.model, p, e, a.index, a.constants, options);
}

bool has_initializer(const Model& m, const std::string& name) { return m.initializer(name); }

TEST(Rewrite, PutsPairsAndIntegersInFrontOfMatMul) {
  Analysed a(two_matmuls());
  quantize(a);
  const auto& graph = a.model.graph();
  const auto& matmul = *producer(graph, "h");
  EXPECT_EQ(matmul.input(0), "x_DequantizeLinear_Output");
  EXPECT_EQ(matmul.input(1), "w1_DequantizeLinear_Output");

  const auto& dq = *producer(graph, "x_DequantizeLinear_Output");
  EXPECT_EQ(dq.name(), "x_DequantizeLinear");
  EXPECT_THAT(dq.input(), ElementsAre("x_QuantizeLinear_Output", "x_scale", "x_zero_point"));
  const auto& q = *producer(graph, "x_QuantizeLinear_Output");
  EXPECT_THAT(q.input(), ElementsAre("x", "x_scale", "x_zero_point"));
  EXPECT_EQ(a.model.read("x_scale"), ir::Tensor::scalar<float>(0x1.010102p-7f));
  EXPECT_EQ(a.model.read("x_zero_point"), ir::Tensor::scalar<std::uint8_t>(128));

  const auto& weight = *producer(graph, "w1_DequantizeLinear_Output");
  EXPECT_THAT(weight.input(), ElementsAre("w1_quantized", "w1_scale", "w1_zero_point"));
  EXPECT_EQ(int_attribute(weight, "axis", -9), 1);
  EXPECT_EQ(a.model.read("w1_scale").shape(), ir::Sizes{4});
  EXPECT_EQ(a.model.read("w1_zero_point"), ir::Tensor::of<std::int8_t>({4}, {0, 0, 0, 0}));
  EXPECT_EQ(a.model.read("w1_quantized").as<std::int8_t>()[8], -127);
}

TEST(Rewrite, OnePairForATensorAndOtherReadersKeepTheFloat) {
  Analysed a(two_matmuls());
  quantize(a);
  int pairs = 0;
  for (const auto& n : a.model.graph().node()) pairs += n.op_type() == "QuantizeLinear";
  EXPECT_EQ(pairs, 2);
  EXPECT_EQ(producer(a.model.graph(), "y")->input(0), "h_DequantizeLinear_Output");
  EXPECT_THAT(producer(a.model.graph(), "out")->input(), ElementsAre("y", "h"));
}

TEST(Rewrite, DropsWhatNothingReadsAnyMore) {
  Analysed a(two_matmuls());
  quantize(a);
  EXPECT_EQ(find_node(a.model.graph(), "Cast"), nullptr);
  for (const char* gone : {"w1_half", "w2"}) EXPECT_FALSE(has_initializer(a.model, gone)) << gone;
  EXPECT_TRUE(has_initializer(a.model, "spare")) << "was not ours to remove";
}

TEST(Rewrite, KeepsAWeightThatIsReadElsewhere) {
  GraphBuilder g = two_matmuls();
  g.node("Identity", {"w1"}, "copy");
  g.output("copy");
  Analysed a(std::move(g));
  quantize(a);
  EXPECT_TRUE(has_initializer(a.model, "w1_half"));
  EXPECT_NE(producer(a.model.graph(), "w1"), nullptr);
}

TEST(Rewrite, NodesStayInOrder) {
  Analysed a(two_matmuls());
  quantize(a);
  std::set<std::string> made{"x"};
  for (const auto& t : a.model.graph().initializer()) made.insert(t.name());
  for (const auto& n : a.model.graph().node()) {
    for (const auto& i : n.input()) EXPECT_TRUE(made.contains(i)) << i << " of " << n.name();
    made.insert(n.output().begin(), n.output().end());
  }
  EXPECT_TRUE(made.contains("out"));
}

TEST(Rewrite, SymmetricInt8AndFloatWeights) {
  Analysed a(two_matmuls());
  quantize(a, {ir::DType::i8, true}, {true});
  EXPECT_EQ(a.model.read("h_zero_point"), ir::Tensor::scalar<std::int8_t>(0));
  EXPECT_EQ(a.model.read("h_scale"), ir::Tensor::scalar<float>(0x1.5c523ep-6f));
  const auto& q = *producer(a.model.graph(), "w1_QuantizeLinear_Output");
  EXPECT_THAT(q.input(), ElementsAre("w1", "w1_scale", "w1_zero_point"));
  EXPECT_EQ(int_attribute(q, "axis", -9), 1);
  EXPECT_TRUE(has_initializer(a.model, "w1_half"));
  EXPECT_FALSE(has_initializer(a.model, "w1_quantized"));
}

TEST(Rewrite, TakesANewNameWhereOneIsTaken) {
  GraphBuilder g = two_matmuls();
  g.weight("x_scale", {1}, {7});
  Analysed a(std::move(g));
  quantize(a);
  EXPECT_EQ(producer(a.model.graph(), "x_QuantizeLinear_Output")->input(1), "x_scale_1");
  EXPECT_EQ(a.model.read("x_scale"), ir::Tensor::of<float>({1}, {7}));
}

TEST(Encode, NamesTheTensorWithoutRange) {
  Analysed a(two_matmuls());
  Placement p = place(a);
  EXPECT_THAT(
      [&] {
        encode(p, a.index, a.constants, {{"x", {0, 1}}}, {});
      },
      ThrowsMessage<Error>(testing::AllOf(HasSubstr("'h'"), HasSubstr("'y_node'"))));
}

TEST(Encode, LeavesMasksAndUnsuitableConstantsInFloat) {
  Analysed a(two_matmuls());
  Placement p = place(a);
  const Ranges masked{{"x", {-3.4e38f, 1.0f}}, {"h", {0, 1}}};
  const Encodings e = encode(p, a.index, a.constants, masked, {});
  EXPECT_EQ(p.sites.size(), 1u);
  EXPECT_THAT(p.skipped.back().reason, HasSubstr("like a mask"));
  EXPECT_FALSE(e.contains({"x", Role::activation}));
  EXPECT_FALSE(e.contains({"w1", Role::weight})) << "its only reader stays in float";

  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("Cast", {"x"}, "half");
  g.set("to", std::int64_t{onnx::TensorProto::FLOAT16});
  g.node("MatMul", {"half", g.half_weight("w", {4, 1}, {1, 2, 3, 4})}, "y");
  g.output("y");
  Analysed half(std::move(g));
  Placement q = place(half);
  EXPECT_THAT(
      [&] {
        encode(q, half.index, half.constants, {{"half", {0, 1}}}, {});
      },
      ThrowsMessage<Error>(HasSubstr("f16")));
}

TEST(Encode, AConstantOfAnAddTakesTheActivationType) {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("Add", {"x", g.weight("c", {4}, {0.0f, 1.0f, 2.0f, 2.55f})}, "sum");
  g.node("LayerNormalization", {"sum", g.weight("gamma", {4}, {1, 1, 1, 1})}, "out");
  g.output("out");
  Analysed a(std::move(g));
  quantize(a, {}, {}, {.op_types = {"MatMul", "Add"}});
  EXPECT_EQ(a.model.read("c_quantized"), ir::Tensor::of<std::uint8_t>({4}, {0, 100, 200, 255}));
  EXPECT_EQ(producer(a.model.graph(), "sum")->input(1), "c_DequantizeLinear_Output");
}

class Opset : public testing::Test {
 protected:
  static Model raised(GraphBuilder g, std::optional<std::size_t> rank = std::nullopt) {
    Model m = Model::of(std::move(g.model()), "test.onnx");
    raise_opset(m, [rank](const std::string&) { return rank; });
    return m;
  }
};

TEST_F(Opset, AttributesBecomeInputs) {
  GraphBuilder g(11, 6);
  g.input("x", {1, 2, 4});
  g.node("Unsqueeze", {"x"}, "u");
  g.set("axes", std::vector<std::int64_t>{0, 2});
  g.node("Squeeze", {"u"}, "s");
  g.set("axes", std::vector<std::int64_t>{0});
  g.node("Squeeze", {"s"}, "all");
  g.node("ReduceSum", {"s"}, "r");
  g.set("axes", std::vector<std::int64_t>{-1}).set("keepdims", std::int64_t{0});
  g.node("Split", {"x"}, "left");
  g.graph().mutable_node()->rbegin()->add_output("right");
  g.set("axis", std::int64_t{-1}).set("split", std::vector<std::int64_t>{1, 3});
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
  EXPECT_THAT([] { raised(softmax(std::nullopt), 4); },
              ThrowsMessage<Error>(HasSubstr("'y_node'")));
  EXPECT_THAT([] { raised(softmax(3), std::nullopt); },
              ThrowsMessage<Error>(HasSubstr("unknown rank")));
}

TEST_F(Opset, OlderForms) {
  GraphBuilder g(9, 3);
  g.input("x", {2, 4});
  g.weight("w", {1}, {1});
  g.input("w", {1});  // IR version 3 lists initializers as inputs
  g.node("Slice", {"x"}, "s");
  g.set("starts", std::vector<std::int64_t>{0}).set("ends", std::vector<std::int64_t>{2});
  g.set("axes", std::vector<std::int64_t>{1});
  g.node("Clip", {"s"}, "c");
  g.set("max", 6.0f);
  g.node("Dropout", {"c"}, "d");
  g.set("ratio", 0.1f);
  g.output("d");
  Model m = raised(std::move(g));
  EXPECT_EQ(m.graph().input_size(), 1);
  const auto& slice = *producer(m.graph(), "s");
  ASSERT_EQ(slice.input_size(), 4);
  EXPECT_THAT(m.read(slice.input(3)).to_ints(), ElementsAre(1));
  EXPECT_THAT(m.read(producer(m.graph(), "c")->input(2)).to_doubles(), ElementsAre(6.0));
  EXPECT_EQ(find_node(m.graph(), "Dropout")->attribute_size(), 0);
}

TEST_F(Opset, RefusesWhatItCannotRaise) {
  GraphBuilder g(9);
  g.node("Upsample", {g.input("x")}, "y");
  EXPECT_THAT([&] { raised(g); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("'y_node'"), HasSubstr("Upsample"))));
  EXPECT_THAT([] { raised(GraphBuilder(8)); }, ThrowsMessage<Error>(HasSubstr("opset 8")));
  GraphBuilder newest(21);
  newest.node("Upsample", {newest.input("x")}, "y");
  EXPECT_EQ(opset_of(raised(newest).proto()), 21);
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

TEST_F(Save, InlineAndExternalHoldTheSame) {
  GraphBuilder g = two_matmuls();
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
    EXPECT_EQ(m.graph().node_size(), 4) << name;
  }
}

TEST_F(Save, LeavesNothingWhereItFails) {
  Model m = Model::of(std::move(two_matmuls().model()), "test.onnx");
  EXPECT_THROW(m.save(folder_ / "absent" / "q.onnx"), Error);
  std::filesystem::create_directory(folder_ / "taken.onnx");  // cannot be renamed onto
  EXPECT_THROW(m.save(folder_ / "taken.onnx"), Error);
  EXPECT_THROW(m.save(folder_ / "taken.onnx", 0), Error);
  EXPECT_THAT(files(), ElementsAre("taken.onnx"));
  EXPECT_THROW(m.save("/proc/q.onnx"), Error);
}

TEST(Model, NamesWhatIsNoModel) {
  EXPECT_THAT([] { Model::load("/absent/m.onnx"); },
              ThrowsMessage<Error>(HasSubstr("/absent/m.onnx")));
  EXPECT_THAT([] { Model::load(bertcl::tests::source_file("README.md")); },
              ThrowsMessage<Error>(HasSubstr("not an ONNX")));
}

/// x W + x -> LayerNorm.
GraphBuilder residual() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 4}, std::vector<float>(16, 0.5f))}, "h");
  g.node("Add", {"h", "x"}, "sum");
  g.node("LayerNormalization", {"sum", g.weight("gamma", {4}, {1, 1, 1, 1})}, "out");
  g.output("out");
  return g;
}

PlacementOptions with_channels() {
  PlacementOptions where;
  where.op_types = {"MatMul", "Add"};
  where.add_channels = true;
  return where;
}

TEST(Rewrite, GivesAddsAScaleForEachChannel) {
  Analysed a(residual());
  Placement p = place(a, with_channels());
  ChannelStatistics s;
  s.low = {-1.0f, -2.0f, 0.0f, -0.5f};
  s.high = {1.0f, 6.0f, 51.0f, 0.25f};
  s.mean_square = {1, 1, 1, 1};
  const Ranges ranges{{"x", {-2.0f, 51.0f}}};
  EncodeOptions how;
  how.channels = {{"x", s}, {"h", s}};
  const Encodings e = encode(p, a.index, a.constants, ranges, how);
  rewrite(a.model, p, e, a.index, a.constants, {});

  // x is read by the MatMul with one scale and by the Add with four.
  const auto& graph = a.model.graph();
  const auto& matmul = *producer(graph, producer(graph, "h")->input(0));
  EXPECT_TRUE(a.model.read(matmul.input(1)).shape().empty());
  const auto& add = *producer(graph, "sum");
  for (const int i : {0, 1}) {
    const auto& dq = *producer(graph, add.input(i));
    EXPECT_EQ(dq.op_type(), "DequantizeLinear");
    EXPECT_EQ(int_attribute(dq, "axis", 7), -1);
    EXPECT_THAT(a.model.read(dq.input(1)).as<float>(),
                testing::ElementsAre(testing::FloatEq(2.0f / 255), testing::FloatEq(8.0f / 255),
                                     testing::FloatEq(51.0f / 255), testing::FloatEq(0.75f / 255)));
    EXPECT_THAT(a.model.read(dq.input(2)).as<std::uint8_t>(), ElementsAre(128, 64, 0, 170));
  }
}

TEST(Rewrite, NeedsSamplesForScalesOfChannels) {
  Analysed a(residual());
  Placement p = place(a, with_channels());
  const EncodeOptions how;
  EXPECT_THAT(
      [&] {
        encode(p, a.index, a.constants, {{"x", {-2.0f, 51.0f}}}, how);
      },
      ThrowsMessage<Error>(HasSubstr("no per-channel ranges")));
}

}  // namespace
}  // namespace bertcl::quant
