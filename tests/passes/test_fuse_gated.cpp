// SPDX-License-Identifier: Apache-2.0
// Gated feed-forward parts.
#include "check.hpp"

namespace bertcl::passes {

Pass fuse_gated();
namespace {

TEST(FuseGated, ALinearWithAnActivation) {
  EXPECT_DIFF(fuse_gated(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
+ %a: f32[batch, 8] = linear(%x, %w) {activation = "gelu"}
  const %w2: f32[4, 8] = ...
- %a: f32[batch, 8] = linear(%x, %w) {activation = "gelu"}
  %b: f32[batch, 8] = linear(%x, %w2)
- %y: f32[batch, 8] = Mul(%b, %a)
+ %y: f32[batch, 8] = gated(%a, %b)
  return %y as y
})");
}

TEST(FuseGated, Silu) {
  EXPECT_DIFF(fuse_gated(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
+ %a: f32[batch, 8] = linear(%x, %w)
  const %w2: f32[4, 8] = ...
- %a: f32[batch, 8] = linear(%x, %w)
- %s: f32[batch, 8] = Sigmoid(%a)
- %t: f32[batch, 8] = Mul(%a, %s)
  %b: f32[batch, 8] = linear(%x, %w2)
- %y: f32[batch, 8] = Mul(%t, %b)
+ %y: f32[batch, 8] = gated(%a, %b) {activation = "silu"}
  return %y as y
})");
}

TEST(FuseGated, WhatIsReadElsewhereOrBroadcastStays) {
  EXPECT_UNCHANGED(fuse_gated(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w) {activation = "gelu"}
  const %w2: f32[4, 8] = ...
  %b: f32[batch, 8] = linear(%x, %w2)
  %y: f32[batch, 8] = Mul(%a, %b)
  return %y as y, %a as a
})");
  EXPECT_UNCHANGED(fuse_gated(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w) {activation = "gelu"}
  const %w2: f32[4, 1] = ...
  %b: f32[batch, 1] = linear(%x, %w2)
  %y: f32[batch, 8] = Mul(%a, %b)
  return %y as y
})");
}

TEST(FuseGated, SiluThatIsReadElsewhereOrMeetsNoLinearStays) {
  EXPECT_UNCHANGED(fuse_gated(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w)
  %s: f32[batch, 8] = Sigmoid(%a)
  %t: f32[batch, 8] = Mul(%a, %s)
  const %w2: f32[4, 8] = ...
  %b: f32[batch, 8] = linear(%x, %w2)
  %y: f32[batch, 8] = Mul(%t, %b)
  return %y as y, %t as t
})");
  EXPECT_UNCHANGED(fuse_gated(), R"(graph g(%x: f32[batch, 4], %b: f32[batch, 8]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w)
  %s: f32[batch, 8] = Sigmoid(%a)
  %t: f32[batch, 8] = Mul(%a, %s)
  %y: f32[batch, 8] = Mul(%t, %b)
  return %y as y
})");
}

TEST(FuseGated, LinearsThatWriteBytesStay) {
  EXPECT_UNCHANGED(fuse_gated(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...  const %s: f32[] = 0.5
  %q: u8[batch, 8] = linear_q(%x, %w, _, %s, _, %s, %s, _) {activation = "gelu"}
  %a: f32[batch, 8] = DequantizeLinear(%q, %s)
  const %w2: i8[4, 8] = ...
  %r: u8[batch, 8] = linear_q(%x, %w2, _, %s, _, %s, %s, _)
  %b: f32[batch, 8] = DequantizeLinear(%r, %s)
  %y: f32[batch, 8] = Mul(%a, %b)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
