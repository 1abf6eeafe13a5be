// SPDX-License-Identifier: Apache-2.0
// The Q/DQ graph that is written: structure, names, what goes and what stays.
#include "quant/writing/rewrite.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

/// x (half weights after Cast) -> MatMul -> h; h -> MatMul(w2) -> y; out = y + h.
GraphBuilder two_matmuls() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.half_weight("w1_half", {4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, -8, 7, 6, 5, 4, 3, 2, 0});
  g.node("Cast", {"w1_half"}, "w1", {{"to", 1}});
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

TEST(Rewrite, LeavesTheZerosOfBatchedWeightsToTheRuntime) {
  const auto zero_point_of = [](Scheme scheme, bool as_float) {
    GraphBuilder g;
    g.input("x", {2, 4});
    g.node("MatMul", {"x", g.weight("w", {1, 4, 2}, {1, 2, 3, 4, 5, 6, -8, 1})}, "h");
    g.output("h");
    Analysed a(std::move(g));
    Placement p = place(a);
    EncodeOptions how;
    how.weights.scheme = scheme;
    const Encodings e = encode(p, a.index, a.constants, kRanges, how);
    rewrite(a.model, p, e, a.index, a.constants, {as_float});
    const auto& dq = *producer(a.model.graph(), "w_DequantizeLinear_Output");
    EXPECT_EQ(has_initializer(a.model, "w_zero_point"), dq.input_size() == 3);
    return dq.input_size() == 3;
  };
  const Scheme s8{ir::DType::i8, true};
  EXPECT_FALSE(zero_point_of(s8, false));
  EXPECT_TRUE(zero_point_of(s8, true)) << "QuantizeLinear would make u8";
  EXPECT_TRUE(zero_point_of({ir::DType::u8, false}, false)) << "it is 128";
}

TEST(Encode, NamesTheTensorWithoutRange) {
  Analysed a(two_matmuls());
  Placement p = place(a);
  EXPECT_ERROR(AllOf(HasSubstr("'h'"), HasSubstr("'y_node'")),
               encode(p, a.index, a.constants, {{"x", {0, 1}}}, {}));
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
  g.node("Cast", {"x"}, "half", {{"to", onnx::TensorProto::FLOAT16}});
  g.node("MatMul", {"half", g.half_weight("w", {4, 1}, {1, 2, 3, 4})}, "y");
  g.output("y");
  Analysed half(std::move(g));
  Placement q = place(half);
  EXPECT_ERROR(HasSubstr("f16"), encode(q, half.index, half.constants, {{"half", {0, 1}}}, {}));
}

/// x -> MatMul(w) -> y in f32; y in halves -> MatMul(halves) -> z -> z x z^T.
GraphBuilder partly_halves() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 4}, std::vector<float>(16, 0.25f))}, "y");
  g.node("Cast", {"y"}, "half", {{"to", onnx::TensorProto::FLOAT16}});
  g.node("MatMul", {"half", g.half_weight("v", {4, 4}, std::vector<float>(16, 0.5f))}, "z");
  g.node("Transpose", {"z"}, "turned");
  g.node("MatMul", {"z", "turned"}, "scores");
  g.output("scores");
  return g;
}

TEST(Placement, OperandsThatAreNotF32StayAsTheyAre) {
  Analysed a(partly_halves());
  const ir::Graph types = a.model.import();
  const TypeOf type_of = [&](const std::string& tensor) { return &types.find_value(tensor)->type; };
  const Placement p = place(a.index, a.constants, a.structure(), {}, type_of);
  ASSERT_EQ(p.sites.size(), 1u);
  EXPECT_EQ(p.sites[0].operands[0].tensor, "x");
  ASSERT_EQ(p.skipped.size(), 2u);
  EXPECT_THAT(p.skipped[0].reason,
              HasSubstr("its operand 'half' is f16; only f32 can be quantized: "
                        "export the model in f32"));
  EXPECT_THAT(p.skipped[1].reason, HasSubstr("its operand 'z' is f16"));
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

/// x W + b + x -> LayerNorm.
GraphBuilder residual() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 4}, std::vector<float>(16, 0.5f))}, "linear");
  g.node("Add", {"linear", g.weight("b", {4}, {1, 2, 3, 4})}, "h");
  g.node("Add", {"h", "x"}, "sum");
  g.node("LayerNormalization", {"sum", g.weight("gamma", {4}, {1, 1, 1, 1})}, "out");
  g.output("out");
  return g;
}

PlacementOptions with_channels() {
  PlacementOptions where{.op_types = {"MatMul", "Add"}, .add_channels = true};
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
  const auto& matmul = *producer(graph, producer(graph, "linear")->input(0));
  EXPECT_TRUE(a.model.read(matmul.input(1)).shape().empty());
  const auto& add = *producer(graph, "sum");
  for (const int i : {0, 1}) {
    const auto& dq = *producer(graph, add.input(i));
    EXPECT_EQ(dq.op_type(), "DequantizeLinear");
    EXPECT_EQ(int_attribute(dq, "axis", 7), -1);
    EXPECT_THAT(a.model.read(dq.input(1)).as<float>(),
                ElementsAre(FloatEq(2.0f / 255), FloatEq(8.0f / 255), FloatEq(51.0f / 255),
                            FloatEq(0.75f / 255)));
    EXPECT_THAT(a.model.read(dq.input(2)).as<std::uint8_t>(), ElementsAre(128, 64, 0, 170));
  }
}

// With scale 1 anything that it takes in use would be an integer of its own kind.
TEST(Encode, AChannelOfZerosGetsTheScaleOfTheTensor) {
  Analysed a(residual());
  Placement p = place(a, with_channels());
  ChannelStatistics s;
  s.low = {-1.0f, 0.0f, 0.0f, -0.5f};
  s.high = {1.0f, 0.0f, 4.1f, 0.25f};
  s.mean_square = {1, 0, 1, 1};
  EncodeOptions how;
  how.channels = {{"x", s}, {"h", s}};
  const Encodings e = encode(p, a.index, a.constants, {{"x", {-2.0f, 51.0f}}}, how);
  const QuantizedConstant& channels = e.at({"h", Role::channels}).constant;
  EXPECT_FLOAT_EQ(channels.scales[1], 5.1f / 255);
  EXPECT_EQ(channels.zero_points[1], 50);
}

TEST(Rewrite, NeedsSamplesForScalesOfChannels) {
  Analysed a(residual());
  Placement p = place(a, with_channels());
  const EncodeOptions how;
  EXPECT_ERROR(HasSubstr("no per-channel ranges"),
               encode(p, a.index, a.constants, {{"x", {-2.0f, 51.0f}}}, how));
}

}  // namespace
}  // namespace bertcl::quant::tests
