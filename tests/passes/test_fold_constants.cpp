// SPDX-License-Identifier: Apache-2.0
// Arithmetic on constants, and weights that stay quantized.
#include "check.hpp"

namespace bertcl::passes {

Pass fold_constants(const ir::Limits& limits);
Pass fold_dequantize(const ir::Limits& limits);
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
  constexpr std::string_view weight = R"(graph g(%x: f32[2, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[2, 2] = MatMul(%x, %d)
  return %y as y
})";
  EXPECT_UNCHANGED(fold_constants({}), weight);
  EXPECT_REWRITE(fold_dequantize({}), weight, R"(graph g(%x: f32[2, 2]) {
  const %d_0: f32[2, 2] = [0.5, 0.5, 1.5, 1]
  %y: f32[2, 2] = MatMul(%x, %d_0)
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

TEST(FoldDequantize, WeightsOfFloatMatMulsBecomeFloat) {
  const std::string_view before = R"(graph g(%x: f32[batch, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %s: f32[] = 0.5  const %z: i8[] = 1
  %real: f32[2, 2] = DequantizeLinear(%w, %s, %z)
  %y: f32[batch, 2] = linear(%x, %real)
  return %y as y
})";
  EXPECT_REWRITE(fold_dequantize({}), before, R"(graph g(%x: f32[batch, 2]) {
  const %real: f32[2, 2] = [0, 0.5, 1, 1.5]
  %y: f32[batch, 2] = linear(%x, %real)
  return %y as y
})");
  EXPECT_UNCHANGED(fold_constants({}), before);
}

}  // namespace
}  // namespace bertcl::passes
