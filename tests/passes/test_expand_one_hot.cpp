// SPDX-License-Identifier: Apache-2.0
// OneHot that is no look-up becomes a choice by equal places.
#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass expand_one_hot();
namespace {

TEST(ExpandOneHot, OfTheLastAxis) {
  EXPECT_REWRITE(expand_one_hot(), R"(graph g(%ids: i64[batch, seq], %values: f32[2]) {
  const %depth: i64[] = 3
  %y: f32[batch, seq, 3] = OneHot(%ids, %depth, %values) {axis = -1}
  return %y as y
})",
                 R"(graph g(%ids: i64[batch, seq], %values: f32[2]) {
  const %depth: i64[] = 3  const %first: i64[] = 0  const %second: i64[] = 1
  %negative: bool[batch, seq] = Less(%ids, %first)
  %from_end: i64[batch, seq] = Add(%ids, %depth)
  %index: i64[batch, seq] = Where(%negative, %from_end, %ids)
  %range: i64[3] = Range() {start = 0, step = 1}
  %places: i64[3] = Reshape(%range)
  %turned: i64[batch, seq, 1] = Reshape(%index)
  %equal: bool[batch, seq, 3] = Equal(%turned, %places)
  %on: f32[] = Gather(%values, %second) {axis = 0}
  %off: f32[] = Gather(%values, %first) {axis = 0}
  %y: f32[batch, seq, 3] = Where(%equal, %on, %off)
  return %y as y
})");
}

TEST(ExpandOneHot, IdsThatAreNoIntegersStay) {
  EXPECT_UNCHANGED(expand_one_hot(), R"(graph g(%ids: f32[batch], %values: f32[2]) {
  const %depth: i64[] = 3
  %y: f32[batch, 3] = OneHot(%ids, %depth, %values) {axis = -1}
  return %y as y
})");
}

TEST(ExpandOneHot, GivesWhatTheOperatorGives) {
  for (const std::string axis : {"0", "1", "2", "-1", "-2"}) {
    const std::string shape = axis == "0"                   ? "4, 2, 3"
                              : axis == "2" || axis == "-1" ? "2, 3, 4"
                                                            : "2, 4, 3";
    const std::string text =
        "graph g(%ids: i32[2, 3], %values: f32[2]) {\n  const %depth: i64[1] = [4]\n  %y: f32[" +
        shape + "] = OneHot(%ids, %depth, %values) {axis = " + axis + "}\n  return %y as y\n}";
    const ops::Tensors inputs{{"ids", ir::Tensor::of<std::int32_t>({2, 3}, {0, 3, -1, -4, 4, -5})},
                              {"values", ir::Tensor::of<float>({2}, {-0.5, 2})}};
    ir::Graph expanded = ir::parse(text);
    ASSERT_TRUE(expand_one_hot().run(expanded));
    EXPECT_EQ(ops::interpret(expanded, inputs)[0].to_doubles(),
              ops::interpret(ir::parse(text), inputs)[0].to_doubles())
        << "axis " << axis;
  }
}

}  // namespace
}  // namespace bertcl::passes
