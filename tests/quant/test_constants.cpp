// SPDX-License-Identifier: Apache-2.0
// Values of what depends on initializers alone, and graphs that are wrong.
#include <functional>

#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

/// The value of the node 'u' that `add` puts into a graph which has w, f32[2, 3] of 1 to 6.
ir::Tensor value_of(const std::function<void(GraphBuilder&)>& add) {
  GraphBuilder g;
  g.input("x", {2, 2});
  g.weight("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  add(g);
  g.node("MatMul", {"x", "u"}, "y");
  g.output("y");
  Analysed a(std::move(g));
  return a.constants.value("u");
}

ir::Tensor unsqueezed(const std::vector<std::int64_t>& axes) {
  return value_of([&](auto& g) {
    g.node("Unsqueeze", {g.weight("v", {2}, {3, 4}), g.ints("axes", axes)}, "u");
  });
}

TEST(Constants, UnsqueezeAddsAxes) {
  EXPECT_EQ(unsqueezed({1}), ir::Tensor::of<float>({2, 1}, {3, 4}));
  EXPECT_EQ(unsqueezed({-1, 0}), ir::Tensor::of<float>({1, 2, 1}, {3, 4}));
}

TEST(Constants, AxesThatDoNotFitAreRefused) {
  for (const std::vector<std::int64_t>& axes :
       {std::vector<std::int64_t>{5}, {-3}, {0, 0}, {1, -2}})
    EXPECT_ERROR(AllOf(HasSubstr("'u_node'"), HasSubstr("axis")), unsqueezed(axes));
}

TEST(Constants, ReshapeCopiesAndFillsExtents) {
  const auto reshaped = [](const std::vector<std::int64_t>& shape) {
    return value_of([&](auto& g) { g.node("Reshape", {"w", g.ints("shape", shape)}, "u"); });
  };
  EXPECT_EQ(reshaped({0, 1, -1}), ir::Tensor::of<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_ERROR(AllOf(HasSubstr("'u_node'"), HasSubstr("cannot reshape")), reshaped({4, 2}));
  EXPECT_ERROR(HasSubstr("'u_node'"), reshaped({0, 0, 0, 1}));
}

TEST(Constants, APermThatNamesAnAxisTwiceIsRefused) {
  const auto turned = [](const std::vector<std::int64_t>& perm) {
    return value_of([&](auto& g) {
      g.node("Transpose", {"w"}, "u");
      if (!perm.empty()) g.set("perm", perm);
    });
  };
  EXPECT_EQ(turned({}), ir::Tensor::of<float>({3, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_ERROR(AllOf(HasSubstr("'u_node'"), HasSubstr("perm")), turned({0, 0}));
}

TEST(Constants, FactorsAreBroadcast) {
  const auto times = [](const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    return value_of([&](auto& g) { g.node("Mul", {"w", g.weight("by", shape, values)}, "u"); });
  };
  EXPECT_EQ(times({}, {2}), ir::Tensor::of<float>({2, 3}, {2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(times({3}, {1, 2, 0}), ir::Tensor::of<float>({2, 3}, {1, 4, 0, 4, 10, 0}));
  EXPECT_ERROR(HasSubstr("'u_node'"), times({2}, {1, 2}));
}

TEST(Constants, AnotherOperatorIsNamed) {
  EXPECT_ERROR(AllOf(HasSubstr("'u_node'"), HasSubstr("operator Neg")),
               value_of([](auto& g) { g.node("Neg", {"w"}, "u"); }));
}

}  // namespace
}  // namespace bertcl::quant::tests
