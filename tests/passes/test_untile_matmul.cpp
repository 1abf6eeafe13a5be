// SPDX-License-Identifier: Apache-2.0
// MatMuls with repeated operands.
#include "check.hpp"

namespace bertcl::passes {

Pass untile_matmul();
namespace {

TEST(UntileMatmul, WhatIsComputedOfTheRepeatedIsComputedOnce) {
  EXPECT_REWRITE(untile_matmul(), R"(graph g(%x: f32[2*batch, seq, 4], %c: f32[2, 3, 4]) {
  const %s: f32[] = 0.5  const %z: u8[] = 3  const %n: f32[] = 8
  %r: i64[3] = sizes() {values = "[batch, 1, 1]"}
  %t: f32[2*batch, 3, 4] = Tile(%c, %r)
  %d: f32[2*batch, 3, 4] = Div(%t, %n)
  %p: f32[2*batch, 4, 3] = Transpose(%d) {perm = [0, 2, 1]}
  %q: u8[2*batch, 4, 3] = QuantizeLinear(%p, %s, %z)
  %b: f32[2*batch, 4, 3] = DequantizeLinear(%q, %s, %z)
  %y: f32[2*batch, seq, 3] = MatMul(%x, %b)
  return %y as y
})",
                 R"(graph g(%x: f32[2*batch, seq, 4], %c: f32[2, 3, 4]) {
  const %s: f32[] = 0.5  const %z: u8[] = 3  const %n: f32[] = 8
  %d: f32[2, 3, 4] = Div(%c, %n)
  %p: f32[2, 4, 3] = Transpose(%d) {perm = [0, 2, 1]}
  %q: u8[2, 4, 3] = QuantizeLinear(%p, %s, %z)
  %b: f32[2, 4, 3] = DequantizeLinear(%q, %s, %z)
  %h: f32[batch, 2, seq, 4] = Reshape(%x)
  %m: f32[batch, 2, seq, 3] = MatMul(%h, %b)
  %y: f32[2*batch, seq, 3] = Reshape(%m)
  return %y as y
})");
}

TEST(UntileMatmul, OnTheLeft) {
  EXPECT_REWRITE(untile_matmul(), R"(graph g(%x: f32[batch, 4, seq], %c: f32[1, 3, 4]) {
  %r: i64[3] = sizes() {values = "[batch, 1, 1]"}
  %t: f32[batch, 3, 4] = Tile(%c, %r)
  %y: f32[batch, 3, seq] = MatMul(%t, %x)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 4, seq], %c: f32[1, 3, 4]) {
  %h: f32[batch, 1, 4, seq] = Reshape(%x)
  %m: f32[batch, 1, 3, seq] = MatMul(%c, %h)
  %y: f32[batch, 3, seq] = Reshape(%m)
  return %y as y
})");
}

TEST(UntileMatmul, WhatMovesTheFirstAxisOrRepeatsAnotherStays) {
  EXPECT_UNCHANGED(untile_matmul(), R"(graph g(%x: f32[2*batch, seq, 4], %c: f32[4, 3, 2]) {
  %r: i64[3] = sizes() {values = "[1, 1, batch]"}
  %t: f32[4, 3, 2*batch] = Tile(%c, %r)
  %p: f32[2*batch, 4, 3] = Transpose(%t) {perm = [2, 0, 1]}
  %y: f32[2*batch, seq, 3] = MatMul(%x, %p)
  return %y as y
})");
  EXPECT_UNCHANGED(untile_matmul(), R"(graph g(%x: f32[2, seq, 4*batch], %c: f32[2, 4, 3]) {
  %r: i64[3] = sizes() {values = "[1, batch, 1]"}
  %t: f32[2, 4*batch, 3] = Tile(%c, %r)
  %y: f32[2, seq, 3] = MatMul(%x, %t)
  return %y as y
})");
}

TEST(UntileMatmul, WhatIsReadElsewhereIsComputedForIt) {
  EXPECT_DIFF(untile_matmul(), R"(graph g(%x: f32[2*batch, seq, 4], %c: f32[2, 4, 3]) {
  %r: i64[3] = sizes() {values = "[batch, 1, 1]"}
  %t: f32[2*batch, 4, 3] = Tile(%c, %r)
  const %n: f32[] = 8
  %d: f32[2*batch, 4, 3] = Div(%t, %n)
- %y: f32[2*batch, seq, 3] = MatMul(%x, %d)
+ %o: f32[2, 4, 3] = Div(%c, %n)
+ %h: f32[batch, 2, seq, 4] = Reshape(%x)
+ %m: f32[batch, 2, seq, 3] = MatMul(%h, %o)
+ %y: f32[2*batch, seq, 3] = Reshape(%m)
  return %y as y, %d as d
})");
}

TEST(UntileMatmul, ATileOfOneCopyStays) {
  EXPECT_UNCHANGED(untile_matmul(), R"(graph g(%x: f32[2, seq, 4], %c: f32[2, 4, 3]) {
  %r: i64[3] = sizes() {values = "[1, 1, 1]"}
  %t: f32[2, 4, 3] = Tile(%c, %r)
  %y: f32[2, seq, 3] = MatMul(%x, %t)
  return %y as y
})");
}

TEST(UntileMatmul, AScaleForEachColumnStays) {
  EXPECT_UNCHANGED(untile_matmul(), R"(graph g(%x: f32[2*batch, seq, 4], %c: f32[2, 4, 3]) {
  %r: i64[3] = sizes() {values = "[batch, 1, 1]"}
  %t: f32[2*batch, 4, 3] = Tile(%c, %r)
  const %s: f32[3] = [0.5, 1, 2]  const %z: u8[3] = [3, 4, 5]
  %q: u8[2*batch, 4, 3] = QuantizeLinear(%t, %s, %z) {axis = 2}
  %b: f32[2*batch, 4, 3] = DequantizeLinear(%q, %s, %z) {axis = 2}
  %y: f32[2*batch, seq, 3] = MatMul(%x, %b)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
