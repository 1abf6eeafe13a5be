// SPDX-License-Identifier: Apache-2.0
// Values of f16 and bf16 become f32 between the inputs and the outputs.
#include "check.hpp"

namespace bertcl::passes {

Pass widen_halves();
namespace {

TEST(WidenHalves, InputsConstantsAndOutputs) {
  EXPECT_REWRITE(widen_halves(), R"(graph g(%x: f16[2], %k: i64[2]) {
  const %c: f16[2] = [0.5, 2]
  %s: f16[2] = Add(%x, %c)
  %y: f16[2] = Tanh(%s)
  return %y as y, %k as k
})",
                 R"(graph g(%x: f16[2], %k: i64[2]) {
  const %c.wide: f32[2] = [0.5, 2]
  %w: f32[2] = Cast(%x) {to = "f32"}
  %s: f32[2] = Add(%w, %c.wide)
  %y: f32[2] = Tanh(%s)
  %n: f16[2] = Cast(%y) {to = "f16"}
  return %n as y, %k as k
})");
}

TEST(WidenHalves, CastsBetweenAreNoRounding) {
  EXPECT_DIFF(widen_halves(), R"(graph g(%x: f32[2]) {
- %h: bf16[2] = Cast(%x) {to = "bf16"}
+ %h: f32[2] = Cast(%x) {to = "f32"}
  %y: f32[2] = Cast(%h) {to = "f32"}
  %b: bool[2] = Cast(%h) {to = "bool"}
  return %y as y, %b as b
})");
}

TEST(WidenHalves, NothingToWiden) {
  EXPECT_UNCHANGED(widen_halves(), R"(graph g(%x: f32[2], %y: i8[2]) {
  %z: f32[2] = Tanh(%x)
  return %z as z, %y as y
})");
}

TEST(WidenHalves, AnInputThatIsAnOutput) {
  EXPECT_REWRITE(widen_halves(), R"(graph g(%x: f16[2]) {
  return %x as y
})",
                 R"(graph g(%x: f16[2]) {
  %w: f32[2] = Cast(%x) {to = "f32"}
  %n: f16[2] = Cast(%w) {to = "f16"}
  return %n as y
})");
}

}  // namespace
}  // namespace bertcl::passes
