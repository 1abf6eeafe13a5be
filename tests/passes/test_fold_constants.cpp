// SPDX-License-Identifier: Apache-2.0
// Arithmetic on constants, and weights that stay quantized.
#include "check.hpp"

namespace bertcl::passes {

Pass fold_constants(const ir::Limits& limits);
namespace {

TEST(FoldConstants, ArithmeticOnConstants) {
  EXPECT_REWRITE(fold_constants({}), R"(graph g(%x: f32[4]) {
  const %d: f32[] = 64
  %s: f32[] = Sqrt(%d)
  %y: f32[4] = Div(%x, %s)
  return %y as y
})",
                 R"(graph g(%x: f32[4]) {
  const %s_0: f32[] = 8
  %y: f32[4] = Div(%x, %s_0)
  return %y as y
})");
}

TEST(FoldConstants, Int8WeightsStayQuantized) {
  EXPECT_UNCHANGED(fold_constants({}), R"(graph g(%x: f32[2, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[2, 2] = MatMul(%x, %d)
  return %y as y
})");
}

TEST(FoldConstants, QuantizedVectorsFold) {
  EXPECT_REWRITE(fold_constants({}), R"(graph g(%x: f32[2]) {
  const %w: i8[2] = [1, -2]  const %s: f32[] = 0.5
  %d: f32[2] = DequantizeLinear(%w, %s)
  %y: f32[2] = Mul(%x, %d)
  return %y as y
})",
                 R"(graph g(%x: f32[2]) {
  const %d_0: f32[2] = [0.5, -1]
  %y: f32[2] = Mul(%x, %d_0)
  return %y as y
})");
}

TEST(FoldConstants, FloatWeightsThatAreQuantizedBecomeInt8) {
  EXPECT_DIFF(fold_constants({}), R"(graph g(%x: f32[1, 2]) {
- const %w: f32[2, 2] = [1.0, -0.26, 0.75, 9.0]
+ const %q: i8[2, 2] = [2, -1, 2, 36]
  const %s: f32[2] = [0.5, 0.25]  const %z: i8[2] = [0, 0]
- %q: i8[2, 2] = QuantizeLinear(%w, %s, %z) {axis = 1}
  %d: f32[2, 2] = DequantizeLinear(%q, %s, %z) {axis = 1}
  %y: f32[1, 2] = MatMul(%x, %d)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
