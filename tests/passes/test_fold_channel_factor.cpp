// SPDX-License-Identifier: Apache-2.0
// A factor for each channel in front of QuantizeLinear becomes a scale for each channel.
#include "check.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass share_common();
Pass dead_code();
Pass fold_channel_factor();
namespace {

// What every spelling becomes: x quantized with the scales 0.5 / [1, 2, 4].
constexpr std::string_view folded = R"(graph g(%x: f32[batch, seq, 3]) {
  const %s: f32[3] = [0.5, 0.25, 0.125]  const %z: u8[3] = [7, 7, 7]
  %y: u8[batch, seq, 3] = QuantizeLinear(%x, %s, %z) {axis = 2}
  return %y as y
})";

TEST(FoldChannelFactor, EachSpellingBecomesAScaleForEachChannel) {
  for (const std::string_view matmul :
       {"const %m: f32[3] = [1, 2, 4]\n  %a: f32[batch, seq, 3] = Mul(%x, %m)",
        "const %m: f32[3] = [1, 2, 4]\n  %a: f32[batch, seq, 3] = Mul(%m, %x)",
        "const %m: f32[1, 1, 3] = [1, 2, 4]\n  %a: f32[batch, seq, 3] = Mul(%x, %m)",
        "const %m: f32[3] = [1, 0.5, 0.25]\n  %a: f32[batch, seq, 3] = Div(%x, %m)"}) {
    const std::string before = "graph g(%x: f32[batch, seq, 3]) {\n  " + std::string(matmul) + R"(
  const %s: f32[] = 0.5  const %z: u8[] = 7
  %y: u8[batch, seq, 3] = QuantizeLinear(%a, %s, %z)
  return %y as y
})";
    ir::Graph g = ir::parse(before);
    fold_channel_factor().run(g);
    g.remove_dead();
    const ir::Node& q = *g.nodes().front();
    EXPECT_EQ(g.nodes().size(), 1u) << before;
    EXPECT_EQ(q.inputs[1]->constant->to_doubles(), (std::vector<double>{0.5, 0.25, 0.125}));
    EXPECT_EQ(q.inputs[2]->constant->to_ints(), (std::vector<std::int64_t>{7, 7, 7}));
    EXPECT_EQ(q.int_attribute("axis", 0), 2);
  }
  EXPECT_UNCHANGED(fold_channel_factor(), folded);
}

TEST(FoldChannelFactor, AScaleForEachChannelTakesTheFactorToo) {
  EXPECT_DIFF(fold_channel_factor(), R"(graph g(%x: f32[batch, 2]) {
- const %m: f32[2] = [2, 4]
- %a: f32[batch, 2] = Mul(%x, %m)
- const %s: f32[2] = [0.5, 4]
+ const %s: f32[2] = [0.25, 1]
  const %z: i8[2] = [3, -5]
- %y: i8[batch, 2] = QuantizeLinear(%a, %s, %z) {axis = 1}
+ %y: i8[batch, 2] = QuantizeLinear(%x, %s, %z) {axis = 1}
  return %y as y
})");
}

TEST(FoldChannelFactor, OtherReadersOfTheMatMulKeepIt) {
  const std::string text = after(fold_channel_factor(), R"(graph g(%x: f32[batch, 2]) {
  const %m: f32[2] = [2, 4]
  %a: f32[batch, 2] = Mul(%x, %m)
  const %s: f32[] = 0.5
  %y: u8[batch, 2] = QuantizeLinear(%a, %s)
  const %s2: f32[] = 1
  %z: u8[batch, 2] = QuantizeLinear(%a, %s2)
  return %y as y, %z as z, %a as a
})");
  EXPECT_THAT(text, HasSubstr("Mul(%x"));
  EXPECT_THAT(text, HasSubstr("[0.25, 0.125]"));
  EXPECT_THAT(text, HasSubstr("[0.5, 0.25]"));
}

TEST(FoldChannelFactor, WhatIsNoPositiveFactorForEachChannelStays) {
  for (const std::string_view m : {"f32[2] = [2, 0]", "f32[2] = [2, -1]", "f32[] = 2",
                                   "f32[2, 1] = [2, 4]", "f32[2] = [2, 1e-45]"})
    EXPECT_UNCHANGED(fold_channel_factor(),
                     "graph g(%x: f32[2, 2]) {\n  const %m: " + std::string(m) + R"(
  %a: f32[2, 2] = Mul(%x, %m)
  const %s: f32[] = 0.5
  %y: u8[2, 2] = QuantizeLinear(%a, %s)
  return %y as y
})");
}

TEST(FoldChannelFactor, RowsBeforeColumnsStay) {
  EXPECT_UNCHANGED(fold_channel_factor(), R"(graph g(%x: f32[2, 2]) {
  const %m: f32[2] = [2, 4]
  %a: f32[2, 2] = Mul(%x, %m)
  const %s: f32[2] = [0.5, 1]
  %y: u8[2, 2] = QuantizeLinear(%a, %s) {axis = 0}
  return %y as y
})");
}

// Two vectors of equal values, as a quantizer writes them for each reader, are one quantization.
TEST(FoldChannelFactor, EqualFactorsOfSeveralReadersAreOne) {
  std::string ones;
  for (int i = 0; i < 100; ++i) ones += (i ? ", " : "") + std::to_string(1 << i % 4);
  ir::Graph g = ir::parse("graph g(%x: f32[batch, 100]) {\n  const %m: f32[100] = [" + ones +
                          "]\n  const %m2: f32[100] = [" + ones + R"(]
  %a: f32[batch, 100] = Mul(%x, %m)
  %b: f32[batch, 100] = Mul(%x, %m2)
  const %s: f32[] = 0.5
  %y: u8[batch, 100] = QuantizeLinear(%a, %s)
  %z: u8[batch, 100] = QuantizeLinear(%b, %s)
  return %y as y, %z as z
})");
  for (const Pass& pass : {fold_channel_factor(), share_common(), dead_code()}) pass.run(g);
  ir::verify(g, "passes");
  EXPECT_EQ(g.nodes().size(), 1u);
}

}  // namespace
}  // namespace bertcl::passes
