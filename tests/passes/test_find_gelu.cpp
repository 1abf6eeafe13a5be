// SPDX-License-Identifier: Apache-2.0
// The spellings of GELU, and what only looks like one.
#include "check.hpp"

namespace bertcl::passes {

Pass find_gelu();
namespace {

constexpr std::string_view gelu = R"(graph g(%x: f32[batch, seq, 64]) {
  %0: f32[batch, seq, 64] = Gelu(%x) {approximate = "none"}
  return %0 as y
})";
constexpr std::string_view gelu_tanh = R"(graph g(%x: f32[batch, seq, 64]) {
  %0: f32[batch, seq, 64] = Gelu(%x) {approximate = "tanh"}
  return %0 as y
})";

constexpr std::string_view erf_of_torch = R"(graph g(%x: f32[batch, seq, 64]) {
  const %r: f32[] = 1.41421354
  %a: f32[batch, seq, 64] = Div(%x, %r)
  %b: f32[batch, seq, 64] = Erf(%a)
  const %one: f32[] = 1
  %c: f32[batch, seq, 64] = Add(%b, %one)
  %d: f32[batch, seq, 64] = Mul(%x, %c)
  const %half: f32[1] = [0.5]
  %e: f32[batch, seq, 64] = Mul(%d, %half)
  return %e as y
})";

TEST(FindGelu, ErfFormOfTorch) { EXPECT_REWRITE(find_gelu(), erf_of_torch, gelu); }

TEST(FindGelu, OnlyNumbersThatHalfPrecisionRoundsMayBeOff) {
  EXPECT_UNCHANGED(find_gelu(), replaced(erf_of_torch, "[0.5]", "[0.4996]"));
  EXPECT_UNCHANGED(find_gelu(), replaced(erf_of_torch, " = 1\n", " = 1.0005\n"));
  EXPECT_REWRITE(find_gelu(), replaced(erf_of_torch, "1.41421354", "1.4140625"), gelu);
}

TEST(FindGelu, ErfFormWithTheHalfFirst) {
  EXPECT_REWRITE(find_gelu(), R"(graph g(%x: f32[batch, seq, 64]) {
  const %half: f32[] = 0.5  const %r: f32[] = 0.70710677
  %h: f32[batch, seq, 64] = Mul(%half, %x)
  %a: f32[batch, seq, 64] = Mul(%r, %x)
  %b: f32[batch, seq, 64] = Erf(%a)
  const %one: f32[] = 1
  %c: f32[batch, seq, 64] = Add(%one, %b)
  %e: f32[batch, seq, 64] = Mul(%h, %c)
  return %e as y
})",
                 gelu);
}

TEST(FindGelu, TanhFormWithPow) {
  EXPECT_REWRITE(find_gelu(), R"(graph g(%x: f32[batch, seq, 64]) {
  const %three: f32[] = 3
  %p: f32[batch, seq, 64] = Pow(%x, %three)
  const %c: f32[] = 0.044715
  %q: f32[batch, seq, 64] = Mul(%p, %c)
  %r: f32[batch, seq, 64] = Add(%x, %q)
  const %k: f32[] = 0.7978846
  %s: f32[batch, seq, 64] = Mul(%r, %k)
  %t: f32[batch, seq, 64] = Tanh(%s)
  const %one: f32[] = 1
  %u: f32[batch, seq, 64] = Add(%t, %one)
  const %half: f32[] = 0.5
  %v: f32[batch, seq, 64] = Mul(%x, %half)
  %w: f32[batch, seq, 64] = Mul(%v, %u)
  return %w as y
})",
                 gelu_tanh);
}

TEST(FindGelu, AnotherConstantIsNoGelu) {
  EXPECT_UNCHANGED(find_gelu(), replaced(erf_of_torch, "1.41421354", "1.5"));
}

TEST(FindGelu, AConstantThatRepeatsItStays) {
  EXPECT_UNCHANGED(find_gelu(), R"(graph g(%x: f32[1, 4]) {
  const %r: f32[] = 1.41421354
  %a: f32[1, 4] = Div(%x, %r)
  %b: f32[1, 4] = Erf(%a)
  const %one: f32[] = 1
  %c: f32[1, 4] = Add(%b, %one)
  %d: f32[1, 4] = Mul(%x, %c)
  const %half: f32[3, 1] = [0.5, 0.5, 0.5]
  %e: f32[3, 4] = Mul(%d, %half)
  return %e as y
})");
}

TEST(FindGelu, TheTwoOperandsMustBeTheSame) {
  EXPECT_UNCHANGED(find_gelu(), replaced(replaced(erf_of_torch, "(%x: f32[",
                                                  "(%y: f32[batch, seq, 64], %x: f32["),
                                         "Div(%x, %r)", "Div(%y, %r)"));
}

}  // namespace
}  // namespace bertcl::passes
