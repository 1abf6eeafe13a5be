// SPDX-License-Identifier: Apache-2.0
// MatMuls of quantized operands, or why they stay in float.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass lower_linear_q();
namespace {

TEST(LowerLinearQ, QuantizedOperandsMakeALinearQ) {
  EXPECT_DIFF(lower_linear_q(), R"(graph g(%q: u8[batch, 2]) {
+ const %w: i8[2, 2] = [1, 2, 3, 4]  const %b: f32[2] = [1, 2]
  const %xs: f32[] = 0.5  const %xz: u8[] = 3
- %x: f32[batch, 2] = DequantizeLinear(%q, %xs, %xz)
- const %w: i8[2, 2] = [1, 2, 3, 4]
  const %ws: f32[2] = [0.5, 0.25]
- %wd: f32[2, 2] = DequantizeLinear(%w, %ws) {axis = 1}
- const %b: f32[2] = [1, 2]
- %y: f32[batch, 2] = linear(%x, %wd, %b)
+ %y: f32[batch, 2] = linear_q(%q, %w, %b, %xs, %xz, %ws)
  return %y as y
})");
}

TEST(LowerLinearQ, Unsigned8BitWeightsAroundTheMiddleMoveToSigned) {
  const std::string text = after(lower_linear_q(), R"(graph g(%q: i8[batch, 2]) {
  const %xs: f32[] = 0.5
  %x: f32[batch, 2] = DequantizeLinear(%q, %xs)
  const %w: u8[2, 2] = [0, 128, 255, 129]  const %ws: f32[] = 0.5  const %wz: u8[] = 128
  %wd: f32[2, 2] = DequantizeLinear(%w, %ws, %wz)
  %y: f32[batch, 2] = linear(%x, %wd)
  return %y as y
})");
  EXPECT_THAT(text, HasSubstr("i8[2, 2] = [-128, 0, 127, 1]"));
  EXPECT_THAT(text, HasSubstr("linear_q"));
}

TEST(LowerLinearQ, WhatCannotBeALinearQSaysWhy) {
  const std::string rows = after(lower_linear_q(), R"(graph g(%q: i8[batch, 2]) {
  const %xs: f32[] = 0.5
  %x: f32[batch, 2] = DequantizeLinear(%q, %xs)
  const %w: i8[2, 3] = [1, 2, 3, 4, 5, 6]  const %ws: f32[2] = [0.5, 0.25]
  %wd: f32[2, 3] = DequantizeLinear(%w, %ws) {axis = 0}
  %y: f32[batch, 3] = linear(%x, %wd)
  return %y as y
})");
  EXPECT_THAT(rows, HasSubstr("float_reason = \"the weight's scale has 2 elements along axis 0"));
  const std::string input = after(lower_linear_q(), R"(graph g(%x: f32[batch, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %ws: f32[] = 0.5
  %wd: f32[2, 2] = DequantizeLinear(%w, %ws)
  %y: f32[batch, 2] = linear(%x, %wd)
  return %y as y
})");
  EXPECT_THAT(input, HasSubstr("float_reason = \"its input is not quantized"));
}

// 255 * 128 * 65793 is the last sum that an int32 holds, 255 * 255 * 33025 with a zero point.
TEST(LowerLinearQ, LinearsThatCouldOverflowStayInFloat) {
  const auto lowered = [](std::int64_t k, const char* zero = "") {
    return after(lower_linear_q(), fmt::format(R"(graph g(%x: u8[batch, {0}]) {{
  const %s: f32[] = 0.5
  %d: f32[batch, {0}] = DequantizeLinear(%x, %s)
  const %w: i8[{0}, 1] = ...  const %z: i8[] = 3
  %dw: f32[{0}, 1] = DequantizeLinear(%w, %s{1})
  %y: f32[batch, 1] = linear(%d, %dw)
  return %y as y
}})",
                                               k, zero));
  };
  EXPECT_THAT(lowered(65793), HasSubstr("linear_q("));
  EXPECT_THAT(lowered(65794), HasSubstr("K = 65794 can overflow"));
  EXPECT_THAT(lowered(33025, ", %z"), HasSubstr("linear_q("));
  EXPECT_THAT(lowered(33026, ", %z"), HasSubstr("the int32 accumulator (at most 33025)"));
}

}  // namespace
}  // namespace bertcl::passes
