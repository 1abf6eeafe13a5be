// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul in the spelling of the other integer MatMuls.
#include "check.hpp"

namespace bertcl::passes {

Pass split_qlinear_matmul();
namespace {

TEST(SplitQLinearMatMul, IntegerSumsAndTheirScales) {
  constexpr std::string_view text = R"(graph g(%a: u8[m, 2]) {
  const %az: u8[] = 3  const %b: i8[2, 2] = [1, 2, 3, 4]  const %bs: f32[2] = [0.5, 0.25]
  const %bz: i8[2] = [0, 1]  const %ys: f32[] = 0.125  const %yz: u8[] = 128
  const %as: f32[1] = [0.5]
  %y: u8[m, 2] = QLinearMatMul(%a, %as, %az, %b, %bs, %bz, %ys, %yz)
  return %y as y
})";
  constexpr std::string_view expected = R"(graph g(%a: u8[m, 2]) {
  const %az: u8[] = 3  const %b: i8[2, 2] = [1, 2, 3, 4]  const %bs: f32[2] = [0.5, 0.25]
  const %bz: i8[2] = [0, 1]  const %ys: f32[] = 0.125  const %yz: u8[] = 128
  const %as_0: f32[] = 0.5
  %s: i32[m, 2] = MatMulInteger(%a, %b, %az, %bz)
  %n: f32[m, 2] = Cast(%s) {to = "f32"}
  %h: f32[m, 2] = Mul(%n, %as_0)
  %r: f32[m, 2] = Mul(%h, %bs)
  %y: u8[m, 2] = QuantizeLinear(%r, %ys, %yz)
  return %y as y
})";
  EXPECT_REWRITE(split_qlinear_matmul(), text, expected);
  EXPECT_REWRITE(split_qlinear_matmul(), replaced(text, "f32[1] = [0.5]", "f32[] = 0.5"),
                 replaced(replaced(expected, "%as_0:", "%as:"), "%as_0)", "%as)"));
}

TEST(SplitQLinearMatMul, HeadsAreDequantized) {
  EXPECT_DIFF(split_qlinear_matmul(), R"(graph g(%a: u8[b, 2, s, t], %v: u8[b, 2, t, 4]) {
- const %as: f32[1] = [0.5]
  const %az: u8[] = 3  const %vs: f32[] = 0.25  const %vz: u8[] = 7  const %ys: f32[] = 0.125
  const %yz: u8[] = 128
- %y: u8[b, 2, s, 4] = QLinearMatMul(%a, %as, %az, %v, %vs, %vz, %ys, %yz)
+ const %as_0: f32[] = 0.5
+ %p: f32[b, 2, s, t] = DequantizeLinear(%a, %as_0, %az)
+ %q: f32[b, 2, t, 4] = DequantizeLinear(%v, %vs, %vz)
+ %r: f32[b, 2, s, 4] = MatMul(%p, %q)
+ %y: u8[b, 2, s, 4] = QuantizeLinear(%r, %ys, %yz)
  return %y as y
})");
}

TEST(SplitQLinearMatMul, AScaleForEachRowOfTheResultStays) {
  EXPECT_UNCHANGED(split_qlinear_matmul(), R"(graph g(%a: u8[3, 2]) {
  const %s: f32[] = 0.5  const %z: u8[] = 3  const %b: i8[2, 2] = [1, 2, 3, 4]  const %bz: i8[] = 0
  const %ys: f32[3] = [1, 2, 3]  const %yz: u8[3] = [0, 0, 0]
  %y: u8[3, 2] = QLinearMatMul(%a, %s, %z, %b, %s, %bz, %ys, %yz)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
