// SPDX-License-Identifier: Apache-2.0
// Softmax whose normalization moves after its MatMul: the nodes that are written, and when.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quant/transforms/unnormalized_softmax.hpp"
#include "quant/writing/rewrite.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

/// s -> Softmax -> p; MatMul(p, v) -> y; y + y -> out.
GraphBuilder attention(std::int64_t opset = 17) {
  GraphBuilder g(opset);
  g.input("s", {1, 2, 3});
  g.input("v", {1, 3, 4});
  g.node("Softmax", {"s"}, "p");
  g.node("MatMul", {"p", "v"}, "y");
  g.node("Add", {"y", "y"}, "out");
  g.output("out");
  return g;
}

std::set<std::string> unnormalizable(GraphBuilder g, const PlacementOptions& options = {}) {
  Analysed a(std::move(g));
  return unnormalizable_softmaxes(place(a, options), a.index, a.structure(), rank_3);
}

/// The model with Q/DQ and then unnormalized.
Model unnormalized(GraphBuilder g, Scheme activations = {ir::DType::u8, false}) {
  Analysed a(std::move(g));
  Placement p = place(a);
  const auto results = unnormalizable_softmaxes(p, a.index, a.structure(), rank_3);
  const EncodeOptions options{activations, {}};
  const Encodings e =
      encode(p, a.index, a.constants, {{"p", kExponentials}, {"v", {-1.0f, 1.0f}}}, options);
  rewrite(a.model, p, e, a.index, a.constants, {});
  unnormalize_softmax(a.model, results, a.structure());
  return std::move(a.model);
}

std::vector<std::string> nodes_of(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& n : model.graph().node())
    lines.push_back(
        fmt::format("{} = {}({})", n.output(0), n.op_type(), fmt::join(n.input(), ", ")));
  return lines;
}

TEST(UnnormalizedSoftmax, WritesTheSpelling) {
  Model model = unnormalized(attention());
  EXPECT_THAT(
      nodes_of(model),
      ElementsAre("v_QuantizeLinear_Output = QuantizeLinear(v, v_scale, v_zero_point)",
                  "v_DequantizeLinear_Output = DequantizeLinear(v_QuantizeLinear_Output, v_scale, "
                  "v_zero_point)",
                  "p_largest = ReduceMax(s)", "p_shifted = Sub(s, p_largest)",
                  "p_powers = Exp(p_shifted)",
                  "p_QuantizeLinear_Output = QuantizeLinear(p_powers, p_scale, p_zero_point)",
                  "p_DequantizeLinear_Output = DequantizeLinear(p_QuantizeLinear_Output, p_scale, "
                  "p_zero_point)",
                  "y_undivided = MatMul(p_DequantizeLinear_Output, v_DequantizeLinear_Output)",
                  "y_sum = ReduceSum(p_DequantizeLinear_Output, row_axes)",
                  "y = Div(y_undivided, y_sum)", "out = Add(y, y)"));
  EXPECT_EQ(model.read("p_scale"), ir::Tensor::scalar<float>(1.0f / 255.0f));
  EXPECT_EQ(model.read("p_zero_point"), ir::Tensor::scalar<std::uint8_t>(0));
  EXPECT_THAT(model.read("row_axes").to_ints(), ElementsAre(-1));
  const auto& largest = *producer(model.graph(), "p_largest");
  EXPECT_THAT(find_attribute(largest, "axes")->ints(), ElementsAre(-1));
  for (const char* kept : {"p_largest", "y_sum"})
    EXPECT_EQ(int_attribute(*producer(model.graph(), kept), "keepdims", 0), 1) << kept;
}

TEST(UnnormalizedSoftmax, SymmetricInt8) {
  Model model = unnormalized(attention(), {ir::DType::i8, true});
  EXPECT_EQ(model.read("p_scale"), ir::Tensor::scalar<float>(1.0f / 127.0f));
  EXPECT_EQ(model.read("p_zero_point"), ir::Tensor::scalar<std::int8_t>(0));
}

TEST(UnnormalizedSoftmax, AxesAreAnInputFrom18On) {
  const Model model = unnormalized(attention(18));
  const auto& largest = *producer(model.graph(), "p_largest");
  EXPECT_EQ(find_attribute(largest, "axes"), nullptr);
  EXPECT_THAT(largest.input(), ElementsAre("s", "row_axes"));
}

TEST(UnnormalizedSoftmax, WhereItsMatMulAloneReadsIt) {
  EXPECT_THAT(unnormalizable(attention()), UnorderedElementsAre("p"));
  GraphBuilder read = attention();
  read.node("Identity", {"p"}, "copy");
  read.output("copy");
  EXPECT_THAT(unnormalizable(std::move(read)), IsEmpty());
  GraphBuilder given = attention();
  given.output("p");
  EXPECT_THAT(unnormalizable(std::move(given)), IsEmpty());
}

TEST(UnnormalizedSoftmax, OverTheLastAxis) {
  for (const std::int64_t axis : {-1, 2, 1, -2}) {
    GraphBuilder g = attention();
    auto* a = g.graph().mutable_node(0)->add_attribute();
    a->set_name("axis");
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(axis);
    EXPECT_EQ(unnormalizable(std::move(g)).size(), axis == -1 || axis == 2 ? 1u : 0u) << axis;
  }
}

TEST(UnnormalizedSoftmax, AsTheFirstInputOfAQuantizedMatMul) {
  GraphBuilder second = attention();
  second.input("u", {1, 3, 2});
  second.graph().mutable_node(1)->set_input(0, "u");
  second.graph().mutable_node(1)->set_input(1, "p");
  EXPECT_THAT(unnormalizable(std::move(second)), IsEmpty());
  GraphBuilder two = attention();
  two.input("w", {1, 4, 5});
  two.node("MatMul", {"out", "w"}, "z");
  two.output("z");
  EXPECT_THAT(unnormalizable(std::move(two), {.exclude = {"y_node"}}), IsEmpty());
}

class NotUnnormalized : public PlantedTest {
 protected:
  std::vector<std::string> reasons() const {
    std::vector<std::string> lines;
    const Report report = calibrated().write();
    if (const auto it = report.not_applied.find("unnormalized Softmax");
        it != report.not_applied.end())
      for (const SkippedNode& node : it->second)
        lines.push_back(fmt::format("{} {}", node.node, node.reason));
    return lines;
  }
  const std::string self_ = "/bert/encoder/layer.0/attention/self/";
};

TEST_F(NotUnnormalized, SoftmaxIsReportedWithTheReason) {
  options_.placement.exclude = {self_ + "MatMul_1"};
  EXPECT_THAT(reasons(), IsEmpty()) << "not asked for";
  options_.softmax = Softmax::unnormalized;
  EXPECT_THAT(reasons(), ElementsAre(AllOf(StartsWith(self_ + "Softmax "),
                                           HasSubstr("first input of one quantized MatMul"))));
  options_.placement.exclude.clear();
  EXPECT_THAT(reasons(), IsEmpty());
}

TEST_F(NotUnnormalized, AModelWithoutSoftmaxIsReported) {
  TinyBert bert;
  for (auto& node : *bert.builder().graph().mutable_node())
    if (node.op_type() == "Softmax") {
      node.set_op_type("Relu");
      node.clear_attribute();
    }
  Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  options_.softmax = Softmax::unnormalized;
  EXPECT_THAT(reasons(), ElementsAre("the model it has no Softmax"));
}

}  // namespace
}  // namespace bertcl::quant::tests
