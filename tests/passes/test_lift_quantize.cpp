// SPDX-License-Identifier: Apache-2.0
// Quantization above the reshapes of heads.
#include <set>

#include "check.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass lift_quantize();
namespace {

TEST(LiftQuantize, PairMovesAboveHeadsAndScale) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, seq, 8]) {
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  const %s: f32[] = 0.125  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%m, %s, %z)
  %d: f32[batch, 2, seq, 4] = DequantizeLinear(%q, %s, %z)
  return %d as y
})",
                 R"(graph g(%x: f32[batch, seq, 8]) {
  const %s_0: f32[] = 0.25  const %z: u8[] = 7
  %q: u8[batch, seq, 8] = QuantizeLinear(%x, %s_0, %z)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s_0, %z)
  %r: f32[batch, seq, 2, 4] = Reshape(%d)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  return %m as y
})");
}

TEST(LiftQuantize, AScaleThatDiffersByItsRoundingIsShared) {
  // 0.2f / 3 * 3 in f32 is not 0.2f.
  const auto keys = [](const std::string& zero_point) {
    return R"(graph g(%x: f32[batch, seq, 8]) {
  const %c: f32[] = 3  const %s: f32[] = 0.2  const %sc: f32[] = 0.0666666701  const %z: u8[] = 7
  const %zc: u8[] = )" +
           zero_point + R"(
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %q: u8[batch, seq, 2, 4] = QuantizeLinear(%r, %s, %z)
  %d: f32[batch, seq, 2, 4] = DequantizeLinear(%q, %s, %z)
  %m: f32[batch, seq, 2, 4] = Div(%r, %c)
  %qm: u8[batch, seq, 2, 4] = QuantizeLinear(%m, %sc, %zc)
  %dm: f32[batch, seq, 2, 4] = DequantizeLinear(%qm, %sc, %zc)
  return %d as d, %dm as m
})";
  };
  const auto scales = [](const std::string& text) {
    ir::Graph g = ir::parse(text);
    lift_quantize().run(g);
    std::set<double> found;
    for (const auto& n : g.nodes())
      if (n->op == "QuantizeLinear") found.insert(n->inputs[1]->constant->to_doubles()[0]);
    return found.size();
  };
  EXPECT_EQ(scales(keys("7")), 1u);
  EXPECT_EQ(scales(keys("8")), 2u);
}

TEST(LiftQuantize, OfThreeScalesThatDifferByTheirRoundingTheLargestIsShared) {
  ir::Graph g = ir::parse(R"(graph g(%x: f32[batch, seq, 8]) {
  const %s1: f32[] = 0.2  const %s2: f32[] = 0.200000018  const %s3: f32[] = 0.200000033
  %q1: u8[batch, seq, 8] = QuantizeLinear(%x, %s1)
  %d1: f32[batch, seq, 8] = DequantizeLinear(%q1, %s1)
  %q2: u8[batch, seq, 8] = QuantizeLinear(%x, %s2)
  %d2: f32[batch, seq, 8] = DequantizeLinear(%q2, %s2)
  %q3: u8[batch, seq, 8] = QuantizeLinear(%x, %s3)
  %d3: f32[batch, seq, 8] = DequantizeLinear(%q3, %s3)
  return %d1 as a, %d2 as b, %d3 as c
})");
  EXPECT_TRUE(lift_quantize().run(g));
  for (const auto& n : g.nodes())
    EXPECT_EQ(n->inputs[1]->constant->to_doubles()[0], static_cast<double>(0.200000033f));
}

TEST(LiftQuantize, MergedHeadsStayWhereTheyAre) {
  EXPECT_UNCHANGED(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  const %s: f32[] = 0.125
  %q: i8[batch, seq, 8] = QuantizeLinear(%r, %s)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s)
  return %d as y
})");
}

TEST(LiftQuantize, HeadsThatAreMovedAsBytes) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%x, %s, %z)
  %t: u8[batch, seq, 2, 4] = Transpose(%q) {perm = [0, 2, 1, 3]}
  %r: u8[batch, seq, 8] = Reshape(%t)
  return %r as y
})",
                 R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125  const %z: u8[] = 7
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  %q: u8[batch, seq, 8] = QuantizeLinear(%r, %s, %z)
  return %q as y
})");
}

}  // namespace
}  // namespace bertcl::passes
