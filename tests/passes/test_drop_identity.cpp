// SPDX-License-Identifier: Apache-2.0
// Operators that hand their operand on.
#include "check.hpp"

namespace bertcl::passes {

Pass drop_identity();
namespace {

TEST(DropIdentity, WhatHandsItsOperandOnDisappears) {
  EXPECT_REWRITE(drop_identity(), R"(graph g(%x: f32[batch, 4]) {
  %a: f32[batch, 4] = Identity(%x)
  %b: f32[batch, 4] = Cast(%a) {to = "f32"}
  const %zero: f32[] = 0
  %c: f32[batch, 4] = Add(%zero, %b)
  %d: f32[4, batch] = Transpose(%c) {perm = [1, 0]}
  %e: f32[batch, 4] = Transpose(%d) {perm = [1, 0]}
  %one: f32[batch, 4] = Concat(%e) {axis = 1}
  %f: f32[batch, 4] = Neg(%one)
  return %f as y
})",
                 R"(graph g(%x: f32[batch, 4]) {
  %f: f32[batch, 4] = Neg(%x)
  return %f as y
})");
}

TEST(DropIdentity, AnAddOfZeroThatBroadcastsStays) {
  EXPECT_UNCHANGED(drop_identity(), R"(graph g(%x: f32[4]) {
  const %zero: f32[1, 1] = [0]
  %y: f32[1, 4] = Add(%x, %zero)
  return %y as y
})");
}

TEST(Check, ADiffWithoutADifferenceIsRefused) {
  EXPECT_THROW(both("graph g(%x: f32[4]) {\n  return %x as y\n}"), std::invalid_argument);
  EXPECT_THROW(both("graph g(%x: f32[4]) {\n-  %a: f32[4] = Neg(%x)\n-  return %a as y\n"
                    "+  %b: f32[4] = Neg(%x)\n+  return %b as y\n}"),
               std::invalid_argument);
}

}  // namespace
}  // namespace bertcl::passes
