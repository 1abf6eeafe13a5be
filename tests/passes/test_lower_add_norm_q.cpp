// SPDX-License-Identifier: Apache-2.0
// Norms of quantized operands.
#include "check.hpp"

namespace bertcl::passes {

Pass lower_add_norm_q();
namespace {

TEST(LowerAddNormQ, EachOperandByItself) {
  EXPECT_DIFF(lower_add_norm_q(), R"(graph g(%x: f32[batch, 4], %r: i8[batch, 4]) {
+ const %gamma: f32[4] = [1, 1, 1, 1]  const %beta: f32[4] = [0, 0, 0, 0]
  const %s: f32[] = 0.5  const %z: i8[] = 3
- %d: f32[batch, 4] = DequantizeLinear(%r, %s, %z)
- const %gamma: f32[4] = [1, 1, 1, 1]  const %beta: f32[4] = [0, 0, 0, 0]
- %y: f32[batch, 4] = add_norm(%x, %d, %gamma, %beta) {epsilon = 0.5}
+ %y: f32[batch, 4] = add_norm(%x, %r, %gamma, %beta, _, _, %s, %z) {epsilon = 0.5}
  return %y as y
})");
}

TEST(LowerAddNormQ, AScaleForEachColumn) {
  EXPECT_DIFF(lower_add_norm_q(), R"(graph g(%x: u8[batch, seq, 2], %r: i8[batch, seq, 2]) {
+ const %gamma: f32[2] = [1, 1]
  const %xs: f32[2] = [0.5, 0.25]  const %xz: u8[2] = [3, 4]
- %xd: f32[batch, seq, 2] = DequantizeLinear(%x, %xs, %xz) {axis = 2}
  const %rs: f32[2] = [0.125, 1]
- %rd: f32[batch, seq, 2] = DequantizeLinear(%r, %rs) {axis = -1}
- const %gamma: f32[2] = [1, 1]
- %y: f32[batch, seq, 2] = add_norm(%xd, %rd, %gamma, _) {epsilon = 0.5}
+ %y: f32[batch, seq, 2] = add_norm(%x, %r, %gamma, _, %xs, %xz, %rs, _) {epsilon = 0.5}
  return %y as y
})");
}

TEST(LowerAddNormQ, AScaleForEachTokenStays) {
  EXPECT_UNCHANGED(lower_add_norm_q(), R"(graph g(%x: u8[batch, 2, 2]) {
  const %xs: f32[2] = [0.5, 0.25]
  %xd: f32[batch, 2, 2] = DequantizeLinear(%x, %xs) {axis = 1}
  const %gamma: f32[2] = [1, 1]
  %y: f32[batch, 2, 2] = add_norm(%xd, _, %gamma, _) {epsilon = 0.5}
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
