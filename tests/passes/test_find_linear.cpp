// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

namespace bertcl::passes {
namespace {

TEST(FindLinear, ProductAndBias) {
  EXPECT_REWRITE(find_linear(), R"(graph g(%x: f32[batch, seq, 4]) {
  const %w: f32[4, 8] = ...
  %0: f32[batch, seq, 8] = MatMul(%x, %w)
  const %b: f32[8] = ...
  %1: f32[batch, seq, 8] = Add(%b, %0)
  return %1
})",
                 R"(graph g(%x: f32[batch, seq, 4]) {
  const %w: f32[4, 8] = ...
  const %b: f32[8] = ...
  %1: f32[batch, seq, 8] = linear(%x, %w, %b)
  return %1
})");
}

TEST(FindLinear, TwoComputedOperandsStayMatMul) {
  EXPECT_UNCHANGED(find_linear(), R"(graph g(%x: f32[batch, 4, 4], %y: f32[batch, 4, 4]) {
  %0: f32[batch, 4, 4] = MatMul(%x, %y)
  return %0
})");
}

TEST(FindLinear, ABiasThatIsReadTwiceInTheMiddleStaysOutside) {
  EXPECT_REWRITE(find_linear(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %0: f32[batch, 8] = MatMul(%x, %w)
  const %b: f32[8] = ...
  %1: f32[batch, 8] = Add(%b, %0)
  return %1, %0
})",
                 R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %0: f32[batch, 8] = linear(%x, %w)
  const %b: f32[8] = ...
  %1: f32[batch, 8] = Add(%b, %0)
  return %1, %0
})");
}

}  // namespace
}  // namespace bertcl::passes
