// SPDX-License-Identifier: Apache-2.0
// Weights written as torch's exporter does, [out, in] after Transpose.
#include "quant/writing/rewrite.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

void quantize(Analysed& a, const RewriteOptions& options) {
  const Ranges ranges{{"x", {-1.0f, 1.0f}}, {"h", {-0.1f, 2.7f}}};
  Placement p = place(a);
  const Encodings e = encode(p, a.index, a.constants, ranges, {Scheme{ir::DType::i8, true}, {}});
  rewrite(a.model, p, e, a.index, a.constants, options);
}

/// The attribute perm of a Transpose.
std::vector<std::int64_t> perm(const onnx::NodeProto& node) {
  EXPECT_EQ(node.op_type(), "Transpose");
  const auto* a = find_attribute(node, "perm");
  return {a->ints().begin(), a->ints().end()};
}

TEST(TransposedWeights, FloatAsTorchExportsThem) {
  GraphBuilder g;
  g.input("x", {2, 2});
  g.node("Transpose", {g.weight("linear.weight", {3, 2}, {1, 2, 3, 4, 5, -6})}, "t",
         {{"perm", {1, 0}}});
  g.node("MatMul", {"x", "t"}, "h");
  g.node("MatMul", {"h", g.weight("w", {3, 2}, {1, 2, 3, 4, 5, -6})}, "y");
  g.output("y");
  Analysed a(std::move(g));
  RewriteOptions options{true};
  options.transposed_weights = true;
  quantize(a, options);
  const auto& graph = a.model.graph();
  const auto chain = [&](const std::string& matmul, const std::string& source) {
    const auto& transpose = *producer(graph, producer(graph, matmul)->input(1));
    EXPECT_THAT(perm(transpose), ElementsAre(1, 0));
    const auto& dq = *producer(graph, transpose.input(0));
    EXPECT_EQ(dq.op_type(), "DequantizeLinear");
    EXPECT_EQ(int_attribute(dq, "axis", -9), 0);
    const auto& q = *producer(graph, dq.input(0));
    EXPECT_EQ(q.op_type(), "QuantizeLinear");
    EXPECT_EQ(int_attribute(q, "axis", -9), 0);
    EXPECT_EQ(q.input(0), source);
    EXPECT_EQ(q.input(1), dq.input(1));
    return a.model.read(q.input(1));
  };
  // The matrix that the file transposes is taken as it is, scales are those of its rows.
  EXPECT_EQ(chain("h", "linear.weight"),
            (ir::Tensor::of<float>({3}, {2.0f / 127, 4.0f / 127, 6.0f / 127})));
  EXPECT_EQ(producer(graph, "t"), nullptr);
  EXPECT_EQ(chain("y", "w_transposed"), (ir::Tensor::of<float>({2}, {5.0f / 127, 6.0f / 127})));
  EXPECT_EQ(a.model.read("w_transposed"), (ir::Tensor::of<float>({2, 3}, {1, 3, 5, 2, 4, -6})));
  EXPECT_FALSE(a.model.initializer("w"));
}

TEST(TransposedWeights, ATransposeThatKeepsTheAxesIsNone) {
  GraphBuilder g;
  g.input("x", {2, 2});
  g.node("Transpose", {g.weight("w", {2, 2}, {1, 2, 3, 4})}, "t", {{"perm", {0, 1}}});
  g.node("MatMul", {"x", "t"}, "h");
  g.output("h");
  Analysed a(std::move(g));
  RewriteOptions options{true};
  options.transposed_weights = true;
  quantize(a, options);
  const auto& graph = a.model.graph();
  const auto& dq = *producer(graph, producer(graph, producer(graph, "h")->input(1))->input(0));
  EXPECT_EQ(a.model.read(producer(graph, dq.input(0))->input(0)),
            (ir::Tensor::of<float>({2, 2}, {1, 3, 2, 4})));
}

TEST(TransposedWeights, Integers) {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("MatMul", {"x", g.weight("w", {4, 2}, {1, 2, 5, 6, -8, 7, 3, 0})}, "h");
  g.output("h");
  Analysed a(std::move(g));
  quantize(a, {.transposed_weights = true});
  const auto& graph = a.model.graph();
  const auto& transpose = *producer(graph, producer(graph, "h")->input(1));
  EXPECT_THAT(perm(transpose), ElementsAre(1, 0));
  EXPECT_THAT(producer(graph, transpose.input(0))->input(),
              ElementsAre("w_quantized", "w_scale", "w_zero_point"));
  EXPECT_EQ(a.model.read("w_quantized"),
            (ir::Tensor::of<std::int8_t>({2, 4}, {16, 79, -127, 48, 36, 109, 127, 0})));
}

}  // namespace
}  // namespace bertcl::quant::tests
