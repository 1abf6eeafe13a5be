// SPDX-License-Identifier: Apache-2.0
// Values of what depends on initializers alone, and graphs that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bertcl/error.hpp"
#include "tests/quant/graphs.hpp"

namespace bertcl::quant {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

ir::Tensor unsqueezed(const std::vector<std::int64_t>& axes) {
  tests::GraphBuilder g;
  g.input("x", {2, 2});
  g.node("Unsqueeze", {g.weight("w", {2}, {3, 4}), g.ints("axes", axes)}, "u");
  g.node("MatMul", {"x", "u"}, "y");
  g.output("y");
  tests::Analysed a(std::move(g));
  return a.constants.value("u");
}

TEST(Constants, UnsqueezeAddsAxes) {
  EXPECT_EQ(unsqueezed({1}), ir::Tensor::of<float>({2, 1}, {3, 4}));
  EXPECT_EQ(unsqueezed({-1, 0}), ir::Tensor::of<float>({1, 2, 1}, {3, 4}));
}

TEST(Constants, AxesThatDoNotFitAreRefused) {
  for (const std::vector<std::int64_t>& axes :
       {std::vector<std::int64_t>{5}, {-3}, {0, 0}, {1, -2}})
    EXPECT_THAT([&] { unsqueezed(axes); },
                ThrowsMessage<Error>(AllOf(HasSubstr("'u_node'"), HasSubstr("has axis"))));
}

}  // namespace
}  // namespace bertcl::quant
