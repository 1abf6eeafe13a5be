// SPDX-License-Identifier: Apache-2.0
// Quantization above the reshapes of heads.
#include "check.hpp"

namespace bertcl::passes {

Pass lift_quantize();
namespace {

TEST(LiftQuantize, PairMovesAboveHeadsAndScale) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, seq, 8]) {
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%m, %s, %z)
  %d: f32[batch, 2, seq, 4] = DequantizeLinear(%q, %s, %z)
  return %d as y
})",
                 R"(graph g(%x: f32[batch, seq, 8]) {
  const %s_0: f32[] = 0.25
  const %z: u8[] = 7
  %q: u8[batch, seq, 8] = QuantizeLinear(%x, %s_0, %z)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s_0, %z)
  %r: f32[batch, seq, 2, 4] = Reshape(%d)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  return %m as y
})");
}

TEST(LiftQuantize, MergedHeadsStayWhereTheyAre) {
  EXPECT_UNCHANGED(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  const %s: f32[] = 0.125
  %q: i8[batch, seq, 8] = QuantizeLinear(%r, %s)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s)
  return %d as y
})");
}

TEST(LiftQuantize, HeadsThatAreMovedAsBytes) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%x, %s, %z)
  %t: u8[batch, seq, 2, 4] = Transpose(%q) {perm = [0, 2, 1, 3]}
  %r: u8[batch, seq, 8] = Reshape(%t)
  return %r as y
})",
                 R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  %q: u8[batch, seq, 8] = QuantizeLinear(%r, %s, %z)
  return %q as y
})");
}

}  // namespace
}  // namespace bertcl::passes
