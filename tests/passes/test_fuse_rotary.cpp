// SPDX-License-Identifier: Apache-2.0
// Rotary positions of queries and keys in one op.
#include "check.hpp"

namespace bertcl::passes {

Pass fuse_rotary();
namespace {

TEST(FuseRotary, InFloat) {
  EXPECT_REWRITE(fuse_rotary(),
                 R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  const %wk: f32[2, 2] = [5, 6, 7, 8]
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %qt: f32[batch, seq, 2] = rotary(%q, %c, %s) {heads = 1}
  %kt: f32[batch, seq, 2] = rotary(%k, %c, %s) {heads = 1}
  %y: f32[batch, seq, 2] = attention(%qt, %kt, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq.qk: f32[2, 4] = [1, 2, 5, 6, 3, 4, 7, 8]
  %q.qk: f32[batch, seq, 4] = linear(%x, %wq.qk)
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %qt.qk: f32[batch, seq, 4] = rotary(%q.qk, %c, %s) {heads = 2}
  %y: f32[batch, seq, 2] = attention(%qt.qk, %qt.qk, %v, _) {heads = 1, offsets = [0, 2, 0], p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(FuseRotary, EachKeepsItsScale) {
  EXPECT_REWRITE(
      fuse_rotary(),
      R"(graph g(%x: u8[batch, seq, 2], %v: u8[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %r: f32[] = 0.5
  const %t: f32[] = 0.25
  const %z: u8[] = 3
  const %wq: i8[2, 2] = [1, 2, 3, 4]
  const %wk: i8[2, 2] = [5, 6, 7, 8]
  %q: f32[batch, seq, 2] = linear_q(%x, %wq, _, %r, %z, %r)
  %k: f32[batch, seq, 2] = linear_q(%x, %wk, _, %r, %z, %r)
  %qt: u8[batch, seq, 2] = rotary(%q, %c, %s, _, %r, %z) {heads = 1}
  %kt: u8[batch, seq, 2] = rotary(%k, %c, %s, _, %t, _) {heads = 1}
  %y: f32[batch, seq, 2] = attention_q(%qt, %kt, %v, _, %r, %r, %z, %t, _, %r, %z) {heads = 1, p_type = "u8", scale = 0.5}
  return %y as y
})",
      R"(graph g(%x: u8[batch, seq, 2], %v: u8[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq.qk: i8[2, 4] = [1, 2, 5, 6, 3, 4, 7, 8]
  const %r: f32[] = 0.5
  const %z: u8[] = 3
  const %r_0.qk: f32[4] = [0.5, 0.5, 0.5, 0.5]
  %q.qk: f32[batch, seq, 4] = linear_q(%x, %wq.qk, _, %r, %z, %r_0.qk)
  const %r_1.qk: f32[4] = [0.5, 0.5, 0.25, 0.25]
  const %z_0.qk: u8[4] = [3, 3, 0, 0]
  %qt.qk: u8[batch, seq, 4] = rotary(%q.qk, %c, %s, _, %r_1.qk, %z_0.qk) {heads = 2}
  const %t: f32[] = 0.25
  %y: f32[batch, seq, 2] = attention_q(%qt.qk, %qt.qk, %v, _, %r, %r, %z, %t, _, %r, %z) {heads = 1, offsets = [0, 2, 0], p_type = "u8", scale = 0.5}
  return %y as y
})");
}

TEST(FuseRotary, DifferentAnglesStay) {
  EXPECT_UNCHANGED(
      fuse_rotary(),
      R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2], %v: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  const %wk: f32[2, 2] = [5, 6, 7, 8]
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %qt: f32[batch, seq, 2] = rotary(%q, %c, %s) {heads = 1}
  %kt: f32[batch, seq, 2] = rotary(%k, %s, %c) {heads = 1}
  %y: f32[batch, seq, 2] = attention(%qt, %kt, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
