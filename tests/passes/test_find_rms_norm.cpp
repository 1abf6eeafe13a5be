// SPDX-License-Identifier: Apache-2.0
// Spellings of RMSNorm.
#include "check.hpp"

namespace bertcl::passes {

Pass find_layer_norm();
Pass find_rms_norm();
namespace {

/// The mean of the squares of x, and what `end` makes of it.
std::string rms_text(const std::string& square, const std::string& axes, const std::string& end) {
  return R"(graph g(%x: f32[batch, seq, 4]) {
  const %two: f32[] = 2  const %one: f32[] = 1  const %eps: f32[] = 0.5
  const %gamma: f32[4] = [1, 2, 3, 4]
  %p: f32[batch, seq, 4] = )" +
         square + R"(
  %v: f32[batch, seq, 1] = ReduceMean(%p) {axes = [)" +
         axes + R"(], keepdims = 1}
  %e: f32[batch, seq, 1] = Add(%v, %eps)
)" + end +
         R"(
  return %y
})";
}

constexpr const char* kFused = R"(graph g(%x: f32[batch, seq, 4]) {
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[batch, seq, 4] = RMSNormalization(%x, %gamma) {axis = -1, epsilon = 0.5}
  return %y
})";

const char* const kEnds[] = {
    R"(  %s: f32[batch, seq, 1] = Sqrt(%e)
  %i: f32[batch, seq, 1] = Div(%one, %s)
  %n: f32[batch, seq, 4] = Mul(%x, %i)
  %y: f32[batch, seq, 4] = Mul(%gamma, %n))",
    R"(  %s: f32[batch, seq, 1] = Sqrt(%e)
  %i: f32[batch, seq, 1] = Reciprocal(%s)
  %n: f32[batch, seq, 4] = Mul(%i, %x)
  %y: f32[batch, seq, 4] = Mul(%n, %gamma))",
    R"(  %s: f32[batch, seq, 1] = Sqrt(%e)
  %n: f32[batch, seq, 4] = Div(%x, %s)
  %y: f32[batch, seq, 4] = Mul(%n, %gamma))",
    R"(  const %half: f32[] = -0.5
  %i: f32[batch, seq, 1] = Pow(%e, %half)
  %n: f32[batch, seq, 4] = Mul(%x, %i)
  %y: f32[batch, seq, 4] = Mul(%n, %gamma))"};

TEST(FindRmsNorm, EverySpelling) {
  for (const char* square : {"Pow(%x, %two)", "Mul(%x, %x)"})
    for (const char* axes : {"-1", "2"})
      for (const char* end : kEnds)
        EXPECT_REWRITE(find_rms_norm(), rms_text(square, axes, end), kFused);
}

TEST(FindRmsNorm, AMeanOverAnotherAxisStays) {
  EXPECT_UNCHANGED(find_rms_norm(), R"(graph g(%x: f32[batch, seq, 4]) {
  %p: f32[batch, seq, 4] = Mul(%x, %x)
  %v: f32[batch, 1, 4] = ReduceMean(%p) {axes = [1], keepdims = 1}
  const %eps: f32[] = 0.5
  %e: f32[batch, 1, 4] = Add(%v, %eps)
  %s: f32[batch, 1, 4] = Sqrt(%e)
  %n: f32[batch, seq, 4] = Div(%x, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[batch, seq, 4] = Mul(%n, %gamma)
  return %y
})");
}

TEST(FindRmsNorm, AFactorForTheWholeTensorStays) {
  EXPECT_UNCHANGED(find_rms_norm(), replaced(rms_text("Pow(%x, %two)", "2", kEnds[0]),
                                             "f32[4] = [1, 2, 3, 4]", "f32[] = 3"));
}

// In a square tensor the means without their axis broadcast along the other one.
TEST(FindRmsNorm, AMeanThatDropsItsAxisStays) {
  EXPECT_UNCHANGED(find_rms_norm(), R"(graph g(%x: f32[4, 4]) {
  %p: f32[4, 4] = Mul(%x, %x)
  %v: f32[4] = ReduceMean(%p) {axes = [1], keepdims = 0}
  const %eps: f32[] = 0.5
  %e: f32[4] = Add(%v, %eps)
  %s: f32[4] = Sqrt(%e)
  %n: f32[4, 4] = Div(%x, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[4, 4] = Mul(%n, %gamma)
  return %y
})");
}

TEST(FindRmsNorm, AnEpsilonThatAddsAxesStays) {
  EXPECT_UNCHANGED(find_rms_norm(), R"(graph g(%x: f32[batch, seq, 4]) {
  %p: f32[batch, seq, 4] = Mul(%x, %x)
  %v: f32[batch, seq, 1] = ReduceMean(%p) {axes = [2], keepdims = 1}
  const %eps: f32[1, 1, 1, 1] = 0.5
  %e: f32[1, batch, seq, 1] = Add(%v, %eps)
  %s: f32[1, batch, seq, 1] = Sqrt(%e)
  %n: f32[1, batch, seq, 4] = Div(%x, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[1, batch, seq, 4] = Mul(%n, %gamma)
  return %y
})");
}

}  // namespace
}  // namespace bertcl::passes
