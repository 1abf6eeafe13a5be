// SPDX-License-Identifier: Apache-2.0
// Weights of 8 bits that float MatMuls read.
#include "check.hpp"

namespace bertcl::passes {

Pass fold_constants(const ir::Limits& limits);
Pass fold_dequantize(const ir::Limits& limits);
namespace {

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

TEST(FoldDequantize, AScaleForEachColumn) {
  EXPECT_REWRITE(fold_dequantize({}), R"(graph g(%x: f32[2, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[2, 2] = MatMul(%x, %d)
  return %y as y
})",
                 R"(graph g(%x: f32[2, 2]) {
  const %d_0: f32[2, 2] = [0.5, 0.5, 1.5, 1]
  %y: f32[2, 2] = MatMul(%x, %d_0)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
