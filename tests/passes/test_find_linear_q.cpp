// SPDX-License-Identifier: Apache-2.0
// Int8 GEMMs of other spellings than DequantizeLinear -> MatMul become linear_q.
#include "tests/passes/check.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::passes {

Pass find_linear_q();
Pass fuse_qkv();
namespace {

TEST(FindLinearQ, DynamicallyQuantizedInputWithBias) {
  EXPECT_REWRITE(find_linear_q(), R"(graph g(%x: f32[batch, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %ws: f32[2] = [0.5, 0.25]  const %b: f32[1, 2] = [1, 2]
  %q: u8[batch, 2], %xs: f32[], %xz: u8[] = DynamicQuantizeLinear(%x)
  %s: i32[batch, 2] = MatMulInteger(%q, %w, %xz)
  %scale: f32[2] = Mul(%xs, %ws)
  %n: f32[batch, 2] = Cast(%s) {to = "f32"}
  %r: f32[batch, 2] = Mul(%n, %scale)
  %y: f32[batch, 2] = Add(%b, %r)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %b_0: f32[2] = [1, 2]
  const %w.scale: f32[2] = [0.5, 0.25]
  %q: u8[batch, 2], %xs: f32[], %xz: u8[] = DynamicQuantizeLinear(%x)
  %y: f32[batch, 2] = linear_q(%q, %w, %b_0, %xs, %xz, %w.scale)
  return %y as y
})");
}

TEST(FindLinearQ, ConstantScalesInAnyOrderAndUnsignedWeights) {
  EXPECT_REWRITE(find_linear_q(), R"(graph g(%x: i8[batch, 2]) {
  const %w: u8[2, 2] = [0, 128, 255, 129]  const %wz: u8[2] = [128, 100]  const %xz: i8[] = 3
  const %xs: f32[] = 2  const %ws: f32[2] = [0.5, 0.25]
  %s: i32[batch, 2] = MatMulInteger(%x, %w, %xz, %wz)
  %n: f32[batch, 2] = Cast(%s) {to = "f32"}
  %a: f32[batch, 2] = Mul(%xs, %n)
  %y: f32[batch, 2] = Mul(%a, %ws)
  return %y as y
})",
                 R"(graph g(%x: i8[batch, 2]) {
  const %xz: i8[] = 3  const %w_0: i8[2, 2] = [-128, 0, 127, 1]
  const %w.zero_point: i8[2] = [0, -28]  const %one: f32[] = 1  const %w.scale: f32[2] = [1, 0.5]
  %y: f32[batch, 2] = linear_q(%x, %w_0, _, %one, %xz, %w.scale, _, _, %w.zero_point)
  return %y as y
})");
}

TEST(FindLinearQ, WhatIsNoLinearStays) {
  // A zero point for each row, a computed weight, and sums that are read elsewhere too.
  EXPECT_UNCHANGED(find_linear_q(), R"(graph g(%x: u8[2, 2], %v: u8[2, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %xz: u8[2] = [3, 4]
  %a: i32[2, 2] = MatMulInteger(%x, %w, %xz)
  %b: f32[2, 2] = Cast(%a) {to = "f32"}
  %c: i32[2, 2] = MatMulInteger(%x, %v)
  %d: f32[2, 2] = Cast(%c) {to = "f32"}
  %e: i32[2, 2] = MatMulInteger(%x, %w)
  %f: f32[2, 2] = Cast(%e) {to = "f32"}
  return %b as b, %d as d, %e as e, %f as f
})");
}

TEST(FindLinearQ, AWeightWithoutRowsStays) {
  EXPECT_UNCHANGED(find_linear_q(), R"(graph g(%x: u8[2, 0]) {
  const %w: i8[0, 8] = ...
  %a: i32[2, 8] = MatMulInteger(%x, %w)
  %y: f32[2, 8] = Cast(%a) {to = "f32"}
  return %y as y
})");
}

TEST(FindLinearQ, SumsThatAnInt32MayNotHoldStay) {
  EXPECT_UNCHANGED(find_linear_q(), R"(graph g(%x: u8[2, 65794]) {
  const %w: i8[65794, 1] = ...
  %a: i32[2, 1] = MatMulInteger(%x, %w)
  %y: f32[2, 1] = Cast(%a) {to = "f32"}
  return %y as y
})");
}

TEST(FindLinearQ, AScaleForEachRow) {
  EXPECT_REWRITE(find_linear_q(), R"(graph g(%x: i8[m, k, 2], %s: f32[m, k, 1]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %ws: f32[2] = [0.5, 0.25]  const %b: f32[2] = [1, 2]
  %a: i32[m, k, 2] = MatMulInteger(%x, %w)
  %c: f32[m, k, 2] = Cast(%a) {to = "f32"}
  %d: f32[m, k, 2] = Mul(%c, %ws)
  %e: f32[m, k, 2] = Mul(%d, %s)
  %y: f32[m, k, 2] = Add(%e, %b)
  return %y as y
})",
                 R"(graph g(%x: i8[m, k, 2], %s: f32[m, k, 1]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %b: f32[2] = [1, 2]  const %w.scale: f32[2] = [0.5, 0.25]
  %y: f32[m, k, 2] = linear_q(%x, %w, %b, %s, _, %w.scale)
  return %y as y
})");
}

TEST(FindLinearQ, AScaleForEachPlaneStaysOutside) {
  const std::string text = after(find_linear_q(), R"(graph g(%x: u8[3, 2, 2], %s: f32[3, 1, 1]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]
  %a: i32[3, 2, 2] = MatMulInteger(%x, %w)
  %b: f32[3, 2, 2] = Cast(%a) {to = "f32"}
  %y: f32[3, 2, 2] = Mul(%b, %s)
  return %y as y
})");
  EXPECT_THAT(text, HasSubstr("linear_q"));
  EXPECT_THAT(text, HasSubstr("Mul"));
}

TEST(FuseQkvInteger, ZeroPointsOfWeightsSideBySideAndOneMeasuredInput) {
  const std::string_view graph = R"(graph g(%x: f32[batch, seq, 2], %m: i64[batch, seq]) {
  const %wq: i8[2, 2] = [1, 2, 3, 4]  const %wk: i8[2, 2] = [5, 6, 7, 8]
  const %wv: i8[2, 2] = [9, 10, 11, 12]  const %ws: f32[] = 0.5  const %z: i8[] = 7
  %a: u8[batch, seq, 2], %as: f32[], %az: u8[] = DynamicQuantizeLinear(%x)
  %q: f32[batch, seq, 2] = linear_q(%a, %wq, _, %as, %az, %ws)
  %k: f32[batch, seq, 2] = linear_q(%a, %wk, _, %as, %az, %ws, _, _, %z)
  %v: f32[batch, seq, 2] = linear_q(%a, %wv, _, %as, %az, %ws)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, %m) {heads = 1, scale = 0.5}
  return %y as y
})";
  const std::string text = after(fuse_qkv(), graph);
  EXPECT_THAT(text, HasSubstr("i8[6] = [0, 0, 7, 7, 0, 0]"));
  // MatMuls of differently scaled inputs are not one linear.
  EXPECT_UNCHANGED(fuse_qkv(), replaced(graph, "%as, %az, %ws, _, _", "%ws, %az, %ws, _, _"));
}

}  // namespace
}  // namespace bertcl::passes
