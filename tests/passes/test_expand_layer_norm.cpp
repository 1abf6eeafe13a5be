// SPDX-License-Identifier: Apache-2.0
// LayerNormalization that no kernel takes becomes the operators it is made of.
#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass expand_layer_norm();
namespace {

TEST(ExpandLayerNorm, OverTheLastTwoAxes) {
  EXPECT_REWRITE(expand_layer_norm(), R"(graph g(%x: f32[batch, 2, 3], %s: f32[2, 3]) {
  %y: f32[batch, 2, 3] = LayerNormalization(%x, %s) {axis = 1, epsilon = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 2, 3], %s: f32[2, 3]) {
  const %epsilon: f32[] = 0.5
  %mean: f32[batch, 1, 1] = ReduceMean(%x) {axes = [1, 2], keepdims = 1}
  %c: f32[batch, 2, 3] = Sub(%x, %mean)
  %cc: f32[batch, 2, 3] = Mul(%c, %c)
  %v: f32[batch, 1, 1] = ReduceMean(%cc) {axes = [1, 2], keepdims = 1}
  %ve: f32[batch, 1, 1] = Add(%v, %epsilon)
  %d: f32[batch, 1, 1] = Sqrt(%ve)
  %n: f32[batch, 2, 3] = Div(%c, %d)
  %y: f32[batch, 2, 3] = Mul(%n, %s)
  return %y as y
})");
}

TEST(ExpandLayerNorm, OfSquaresAlone) {
  EXPECT_REWRITE(expand_layer_norm(), R"(graph g(%x: f32[batch, 3], %s: f32[3]) {
  %y: f32[batch, 3] = RMSNormalization(%x, %s) {axis = 1, epsilon = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 3], %s: f32[3]) {
  const %epsilon: f32[] = 0.5
  %xx: f32[batch, 3] = Mul(%x, %x)
  %v: f32[batch, 1] = ReduceMean(%xx) {axes = [1], keepdims = 1}
  %ve: f32[batch, 1] = Add(%v, %epsilon)
  %d: f32[batch, 1] = Sqrt(%ve)
  %n: f32[batch, 3] = Div(%x, %d)
  %y: f32[batch, 3] = Mul(%n, %s)
  return %y as y
})");
}

TEST(ExpandLayerNorm, GivesWhatTheOperatorGives) {
  for (const std::string axis : {"0", "1", "-1"}) {
    const std::string shape = axis == "0" ? "2, 4" : "4";
    const std::string text =
        "graph g(%x: f32[2, 4], %s: f32[" + shape + "], %b: f32[" + shape +
        "]) {\n  %y: f32[2, 4] = LayerNormalization(%x, %s, %b) {axis = " + axis +
        ", epsilon = 0.001}\n  return %y as y\n}";
    const std::vector<float> values{1, -2, 0.5, 4, 3, 3, -1, 0};
    const ir::Sizes sizes = axis == "0" ? ir::Sizes{2, 4} : ir::Sizes{4};
    const std::vector<float> vector(values.begin(), values.begin() + ir::element_count(sizes));
    const ops::Tensors inputs{{"x", ir::Tensor::of<float>({2, 4}, values)},
                              {"s", ir::Tensor::of<float>(sizes, vector)},
                              {"b", ir::Tensor::of<float>(sizes, vector)}};
    ir::Graph expanded = ir::parse(text);
    ASSERT_TRUE(expand_layer_norm().run(expanded));
    const auto expected = ops::interpret(ir::parse(text), inputs)[0].to_doubles();
    const auto found = ops::interpret(expanded, inputs)[0].to_doubles();
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-5) << "axis " << axis << ", element " << i;
  }
}

}  // namespace
}  // namespace bertcl::passes
