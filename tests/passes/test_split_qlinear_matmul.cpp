// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul in the spelling of the other integer MatMuls.
#include "check.hpp"

namespace bertcl::passes {

Pass split_qlinear_matmul();
namespace {

TEST(SplitQLinearMatMul, IntegerSumsAndTheirScales) {
  EXPECT_REWRITE(split_qlinear_matmul(), R"(graph g(%a: u8[batch, 2]) {
  const %as: f32[] = 0.5
  const %az: u8[] = 3
  const %b: i8[2, 2] = [1, 2, 3, 4]
  const %bs: f32[2] = [0.25, 0.125]
  const %bz: i8[2] = [0, 1]
  const %ys: f32[] = 2
  const %yz: u8[] = 7
  %y: u8[batch, 2] = QLinearMatMul(%a, %as, %az, %b, %bs, %bz, %ys, %yz)
  return %y as y
})",
                 R"(graph g(%a: u8[batch, 2]) {
  const %as: f32[] = 0.5
  const %az: u8[] = 3
  const %b: i8[2, 2] = [1, 2, 3, 4]
  const %bs: f32[2] = [0.25, 0.125]
  const %bz: i8[2] = [0, 1]
  const %ys: f32[] = 2
  const %yz: u8[] = 7
  %y.sums: i32[batch, 2] = MatMulInteger(%a, %b, %az, %bz)
  %y.numbers: f32[batch, 2] = Cast(%y.sums) {to = "f32"}
  %half: f32[batch, 2] = Mul(%y.numbers, %as)
  %real: f32[batch, 2] = Mul(%half, %bs)
  %y: u8[batch, 2] = QuantizeLinear(%real, %ys, %yz)
  return %y as y
})");
}

TEST(SplitQLinearMatMul, HeadsAreDequantized) {
  EXPECT_REWRITE(split_qlinear_matmul(),
                 R"(graph g(%a: u8[batch, 2, seq, 4], %b: u8[batch, 2, 4, seq]) {
  const %s: f32[] = 0.5
  const %z: u8[] = 3
  %y: u8[batch, 2, seq, seq] = QLinearMatMul(%a, %s, %z, %b, %s, %z, %s, %z)
  return %y as y
})",
                 R"(graph g(%a: u8[batch, 2, seq, 4], %b: u8[batch, 2, 4, seq]) {
  const %s: f32[] = 0.5
  const %z: u8[] = 3
  %a.real: f32[batch, 2, seq, 4] = DequantizeLinear(%a, %s, %z)
  %b.real: f32[batch, 2, 4, seq] = DequantizeLinear(%b, %s, %z)
  %y.real: f32[batch, 2, seq, seq] = MatMul(%a.real, %b.real)
  %y: u8[batch, 2, seq, seq] = QuantizeLinear(%y.real, %s, %z)
  return %y as y
})");
}

TEST(SplitQLinearMatMul, AScaleForEachRowOfTheResultStays) {
  EXPECT_UNCHANGED(split_qlinear_matmul(), R"(graph g(%a: u8[3, 2]) {
  const %s: f32[] = 0.5
  const %z: u8[] = 3
  const %b: i8[2, 2] = [1, 2, 3, 4]
  const %bz: i8[] = 0
  const %ys: f32[3] = [1, 2, 3]
  const %yz: u8[3] = [0, 0, 0]
  %y: u8[3, 2] = QLinearMatMul(%a, %s, %z, %b, %s, %bz, %ys, %yz)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
