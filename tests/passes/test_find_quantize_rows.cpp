// SPDX-License-Identifier: Apache-2.0
// A scale for each row in primitive operators becomes one op.
#include <string>

#include "tests/passes/check.hpp"

namespace bertcl::passes {

Pass find_quantize_rows();
namespace {

std::string rows(const std::string& axes, const std::string& least, const std::string& steps) {
  return R"(graph g(%x: f32[batch, seq, 8]) {
  const %least: f32[] = )" +
         least + R"(
  const %steps: f32[] = )" +
         steps + R"(
  %a: f32[batch, seq, 8] = Abs(%x)
  %m: f32[)" +
         (axes == "2" ? "batch, seq, 1" : "batch, 1, 8") + R"(] = ReduceMax(%a) {axes = [)" + axes +
         R"(], keepdims = 1}
  %b: f32[)" +
         (axes == "2" ? "batch, seq, 1" : "batch, 1, 8") + R"(] = Max(%m, %least)
  %s: f32[)" +
         (axes == "2" ? "batch, seq, 1" : "batch, 1, 8") + R"(] = Div(%b, %steps)
  %d: f32[batch, seq, 8] = Div(%x, %s)
  %r: f32[batch, seq, 8] = Round(%d)
  %q: i8[batch, seq, 8] = Cast(%r) {to = "i8"}
  return %q as q, %s as s
})";
}

TEST(FindQuantizeRows, BecomesOneOpWithTwoResults) {
  EXPECT_REWRITE(find_quantize_rows(), rows("2", "0.25", "127"),
                 R"(graph g(%x: f32[batch, seq, 8]) {
  %q: i8[batch, seq, 8], %s: f32[batch, seq, 1] = quantize_rows(%x) {least = 0.25}
  return %q as q, %s as s
})");
}

TEST(FindQuantizeRows, WhatMatMulsAloneReadIsUnsigned) {
  std::string text = rows("2", "0.25", "127");
  text.replace(text.find("  return"), std::string::npos, R"(  const %w: i8[8, 2] = ...
  %y: i32[batch, seq, 2] = MatMulInteger(%q, %w)
  %t: i32[batch, seq, 2] = MatMulInteger(%q, %w)
  return %y as y, %t as t, %s as s
})");
  EXPECT_REWRITE(find_quantize_rows(), text, R"(graph g(%x: f32[batch, seq, 8]) {
  const %w: i8[8, 2] = ...  const %z: u8[] = 128
  %q: u8[batch, seq, 8], %s: f32[batch, seq, 1] = quantize_rows(%x) {least = 0.25}
  %y: i32[batch, seq, 2] = MatMulInteger(%q, %w, %z)
  %t: i32[batch, seq, 2] = MatMulInteger(%q, %w, %z)
  return %y as y, %t as t, %s as s
})");
}

TEST(FindQuantizeRows, OtherAxesStepsAndBoundsStay) {
  for (const std::string& text : {rows("1", "0.25", "127"), rows("2", "0.25", "128"),
                                  rows("2", "0", "127"), rows("2", "-1", "127")})
    EXPECT_UNCHANGED(find_quantize_rows(), text);
}

TEST(FindQuantizeRows, TheScaleOfAnotherTensorIsNone) {
  EXPECT_UNCHANGED(find_quantize_rows(), R"(graph g(%x: f32[2, 8], %y: f32[2, 8]) {
  const %least: f32[] = 0.25  const %steps: f32[] = 127
  %a: f32[2, 8] = Abs(%y)
  %m: f32[2, 1] = ReduceMax(%a) {axes = [1], keepdims = 1}
  %b: f32[2, 1] = Max(%m, %least)
  %s: f32[2, 1] = Div(%b, %steps)
  %d: f32[2, 8] = Div(%x, %s)
  %r: f32[2, 8] = Round(%d)
  %q: i8[2, 8] = Cast(%r) {to = "i8"}
  return %q as q
})");
}

}  // namespace
}  // namespace bertcl::passes
