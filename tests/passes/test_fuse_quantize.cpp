// SPDX-License-Identifier: Apache-2.0
// A linear, a norm or an attention and the quantization of its result.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass fuse_quantize();
namespace {

TEST(FuseQuantize, LinearWritesBytes) {
  EXPECT_DIFF(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...  const %s: f32[] = 0.5
- %a: f32[batch, 8] = linear_q(%x, %w, _, %s, _, %s)
  const %os: f32[] = 0.25  const %oz: u8[] = 9
- %y: u8[batch, 8] = QuantizeLinear(%a, %os, %oz)
+ %y: u8[batch, 8] = linear_q(%x, %w, _, %s, _, %s, %os, %oz)
  return %y as y
})");
}

TEST(FuseQuantize, AScaleWithoutAnInverseStays) {
  EXPECT_UNCHANGED(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 2] = ...  const %s: f32[] = 0.5
  %a: f32[batch, 2] = linear_q(%x, %w, _, %s, _, %s)
  const %os: f32[2] = [0.25, 1e-39]
  %y: u8[batch, 2] = QuantizeLinear(%a, %os) {axis = 1}
  return %y as y
})");
}

TEST(FuseQuantize, NormGivesFloatAndBytes) {
  EXPECT_DIFF(fuse_quantize(), R"(graph g(%x: f32[batch, 4]) {
  const %gamma: f32[4] = ...  const %beta: f32[4] = ...
- %a: f32[batch, 4] = add_norm(%x, _, %gamma, %beta) {epsilon = 0.5}
  const %s: f32[] = 0.25
- %y: i8[batch, 4] = QuantizeLinear(%a, %s)
+ %a: f32[batch, 4], %y: i8[batch, 4] = add_norm(%x, _, %gamma, %beta, _, _, _, _, %s, _) {epsilon = 0.5}
  return %y as y, %a as a
})");
}

TEST(FuseQuantize, LinearWritesBytesWithAScaleForEachColumn) {
  EXPECT_DIFF(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 2] = ...  const %s: f32[] = 0.5
- %a: f32[batch, 2] = linear_q(%x, %w, _, %s, _, %s) {activation = "gelu"}
  const %os: f32[2] = [0.25, 0.5]  const %oz: u8[2] = [9, 8]
- %y: u8[batch, 2] = QuantizeLinear(%a, %os, %oz) {axis = 1}
+ %y: u8[batch, 2] = linear_q(%x, %w, _, %s, _, %s, %os, %oz) {activation = "gelu"}
  return %y as y
})");
}

TEST(FuseQuantize, NormQuantizesForTwoKindsOfReadersAndNoMore) {
  EXPECT_DIFF(fuse_quantize(), R"(graph g(%x: f32[batch, 2]) {
  const %gamma: f32[2] = ...
- %a: f32[batch, 2] = add_norm(%x, _, %gamma, _) {epsilon = 0.5}
  const %s: f32[] = 0.25
- %y: i8[batch, 2] = QuantizeLinear(%a, %s)
  const %s2: f32[2] = [0.5, 1]  const %z2: u8[2] = [1, 2]
- %y2: u8[batch, 2] = QuantizeLinear(%a, %s2, %z2) {axis = 1}
+ %a: f32[batch, 2], %y: i8[batch, 2], %y2: u8[batch, 2] = add_norm(%x, _, %gamma, _, _, _, _, _, %s, _, %s2, %z2) {epsilon = 0.5}
  const %s3: f32[] = 2
  %y3: u8[batch, 2] = QuantizeLinear(%a, %s3)
  return %y as y, %y2 as y2, %y3 as y3
})");
}

TEST(FuseQuantize, AttentionTakesOneScale) {
  EXPECT_UNCHANGED(fuse_quantize(), R"(graph g(%q: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %s: f32[] = 0.5
  %a: f32[batch, seq, 2] = attention_q(%q, %q, %q, %m, %s, %s, _, %s, _, %s, _) {heads = 1, p_type = "u8", scale = 0.5}
  const %os: f32[2] = [0.25, 0.5]
  %y: u8[batch, seq, 2] = QuantizeLinear(%a, %os) {axis = 2}
  return %y as y
})");
}

TEST(FuseQuantize, RotaryPositionsTakeOneScale) {
  const auto graph = [](std::string_view scale) {
    return fmt::format(R"(graph g(%x: f32[batch, seq, 4], %cos: f32[seq, 2], %sin: f32[seq, 2]) {{
  %r: f32[batch, seq, 4] = rotary(%x, %cos, %sin) {{heads = 2}}
  const %s: {}  const %z: u8[] = 9
  %y: u8[batch, seq, 4] = QuantizeLinear(%r, %s, %z) {{axis = 2}}
  return %y as y
}})",
                       scale);
  };
  EXPECT_REWRITE(fuse_quantize(), graph("f32[] = 0.25"),
                 R"(graph g(%x: f32[batch, seq, 4], %cos: f32[seq, 2], %sin: f32[seq, 2]) {
  const %s: f32[] = 0.25  const %z: u8[] = 9
  %y: u8[batch, seq, 4] = rotary(%x, %cos, %sin, _, %s, %z) {heads = 2}
  return %y as y
})");
  EXPECT_UNCHANGED(fuse_quantize(), graph("f32[4] = [0.25, 0.5, 0.25, 0.5]"));
}

TEST(FuseQuantize, AFloatResultThatIsNeededStays) {
  EXPECT_UNCHANGED(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...  const %s: f32[] = 0.5
  %a: f32[batch, 8] = linear_q(%x, %w, _, %s, _, %s)
  %y: u8[batch, 8] = QuantizeLinear(%a, %s)
  return %y as y, %a as a
})");
}

TEST(FuseQuantize, TheSumOfANormIsWrittenInFloatOnly) {
  EXPECT_DIFF(fuse_quantize(), R"(graph g(%x: f32[batch, 2], %r: f32[batch, 2]) {
  const %gamma: f32[2] = ...
- %a: f32[batch, 2], %b: f32[batch, 2] = add_norm(%x, %r, %gamma, _) {epsilon = 0.5, sum = 1}
  const %s: f32[] = 0.25
- %y: i8[batch, 2] = QuantizeLinear(%a, %s)
  const %s2: f32[2] = [0.5, 1]  const %z2: u8[2] = [1, 2]
- %y2: u8[batch, 2] = QuantizeLinear(%a, %s2, %z2) {axis = 1}
+ %a: f32[batch, 2], %b: f32[batch, 2], %y: i8[batch, 2], %y2: u8[batch, 2] = add_norm(%x, %r, %gamma, _, _, _, _, _, %s, _, %s2, %z2) {epsilon = 0.5, sum = 1}
  %y3: u8[batch, 2] = QuantizeLinear(%b, %s)
  return %y as y, %y2 as y2, %y3 as y3
})");
}

}  // namespace
}  // namespace bertcl::passes
