// SPDX-License-Identifier: Apache-2.0
// MatMuls with constant weights and their biases.
#include "check.hpp"

namespace bertcl::passes {

Pass find_linear();
namespace {

TEST(FindLinear, MatMulAndBias) {
  EXPECT_DIFF(find_linear(), R"(graph g(%x: f32[batch, seq, 4]) {
  const %w: f32[4, 8] = ...
- %0: f32[batch, seq, 8] = MatMul(%x, %w)
  const %b: f32[8] = ...
- %1: f32[batch, seq, 8] = Add(%b, %0)
+ %1: f32[batch, seq, 8] = linear(%x, %w, %b)
  return %1
})");
}

TEST(FindLinear, AWeightWithoutRowsStaysMatMul) {
  EXPECT_UNCHANGED(find_linear(), R"(graph g(%x: f32[batch, 0]) {
  const %w: f32[0, 8] = ...
  %0: f32[batch, 8] = MatMul(%x, %w)
  return %0
})");
}

TEST(FindLinear, TwoComputedOperandsStayMatMul) {
  EXPECT_UNCHANGED(find_linear(), R"(graph g(%x: f32[batch, 4, 4], %y: f32[batch, 4, 4]) {
  %0: f32[batch, 4, 4] = MatMul(%x, %y)
  return %0
})");
}

TEST(FindLinear, ABiasThatIsReadTwiceInTheMiddleStaysOutside) {
  EXPECT_DIFF(find_linear(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
- %0: f32[batch, 8] = MatMul(%x, %w)
+ %0: f32[batch, 8] = linear(%x, %w)
  const %b: f32[8] = ...
  %1: f32[batch, 8] = Add(%b, %0)
  return %1, %0
})");
}

TEST(FindLinear, ABiasAfterTheResidualSum) {
  EXPECT_DIFF(find_linear(), R"(graph g(%x: f32[batch, seq, 4], %r: f32[batch, seq, 8]) {
  const %w: f32[4, 8] = ...
- %0: f32[batch, seq, 8] = MatMul(%x, %w)
- %1: f32[batch, seq, 8] = Add(%r, %0)
  const %b: f32[8] = ...
- %2: f32[batch, seq, 8] = Add(%1, %b)
+ %0.biased: f32[batch, seq, 8] = linear(%x, %w, %b)
+ %2: f32[batch, seq, 8] = Add(%0.biased, %r)
  return %2
})");
}

TEST(FindLinear, ABiasAfterTheSumOfAnIntegerMatMul) {
  EXPECT_DIFF(find_linear(), R"(graph g(%x: u8[batch, 4], %z: u8[], %s: f32[], %r: f32[batch, 8]) {
  const %w: i8[4, 8] = ...
  %0: i32[batch, 8] = MatMulInteger(%x, %w, %z)
  %1: f32[batch, 8] = Cast(%0) {to = "f32"}
  %2: f32[batch, 8] = Mul(%1, %s)
- %3: f32[batch, 8] = Add(%2, %r)
  const %b: f32[8] = ...
- %4: f32[batch, 8] = Add(%b, %3)
+ %2.biased: f32[batch, 8] = Add(%2, %b)
+ %4: f32[batch, 8] = Add(%2.biased, %r)
  return %4
})");
}

TEST(FindLinear, ABiasAfterASumThatOthersReadStays) {
  EXPECT_UNCHANGED(find_linear(), R"(graph g(%p: f32[batch, 8], %r: f32[batch, 8]) {
  %1: f32[batch, 8] = Add(%p, %r)
  const %b: f32[8] = ...
  %2: f32[batch, 8] = Add(%1, %b)
  return %2, %1
})");
}

}  // namespace
}  // namespace bertcl::passes
