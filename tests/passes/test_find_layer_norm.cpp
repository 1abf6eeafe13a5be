// SPDX-License-Identifier: Apache-2.0
// The decomposed LayerNorm, and what only looks like one.
#include "check.hpp"

namespace bertcl::passes {

Pass find_layer_norm();
namespace {

constexpr std::string_view decomposed = R"(graph g(%x: f32[batch, seq, 4]) {
  %m: f32[batch, seq, 1] = ReduceMean(%x) {axes = [-1], keepdims = 1}
  %d: f32[batch, seq, 4] = Sub(%x, %m)
  const %two: f32[] = 2
  %p: f32[batch, seq, 4] = Pow(%d, %two)
  %v: f32[batch, seq, 1] = ReduceMean(%p) {axes = [2], keepdims = 1}
  const %eps: f32[] = 0.5
  %e: f32[batch, seq, 1] = Add(%v, %eps)
  %s: f32[batch, seq, 1] = Sqrt(%e)
  %n: f32[batch, seq, 4] = Div(%d, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %g: f32[batch, seq, 4] = Mul(%n, %gamma)
  const %beta: f32[4] = [5, 6, 7, 8]
  %y: f32[batch, seq, 4] = Add(%g, %beta)
  return %y
})";

TEST(FindLayerNorm, DecomposedSpelling) {
  EXPECT_REWRITE(find_layer_norm(), decomposed, R"(graph g(%x: f32[batch, seq, 4]) {
  const %gamma: f32[4] = [1, 2, 3, 4]  const %beta: f32[4] = [5, 6, 7, 8]
  %y: f32[batch, seq, 4] = LayerNormalization(%x, %gamma, %beta) {axis = -1, epsilon = 0.5}
  return %y
})");
}

TEST(FindLayerNorm, WithoutBeta) {
  EXPECT_REWRITE(find_layer_norm(),
                 replaced(replaced(decomposed, "Pow(%d, %two)", "Mul(%d, %d)"), "Add(%g, %beta)",
                          "Add(%g, %x)"),
                 R"(graph g(%x: f32[batch, seq, 4]) {
  const %gamma: f32[4] = [1, 2, 3, 4]
  %g: f32[batch, seq, 4] = LayerNormalization(%x, %gamma) {axis = -1, epsilon = 0.5}
  %y: f32[batch, seq, 4] = Add(%g, %x)
  return %y
})");
}

TEST(FindLayerNorm, ADifferenceInAWiderType) {
  EXPECT_REWRITE(find_layer_norm(), R"(graph g(%x: f32[batch, seq, 4]) {
  %m: f32[batch, seq, 1] = ReduceMean(%x) {axes = [-1], keepdims = 1}
  %d: f32[batch, seq, 4] = Sub(%x, %m)
  %w: f64[batch, seq, 4] = Cast(%d) {to = "f64"}
  const %two: f64[] = 2
  %p: f64[batch, seq, 4] = Pow(%w, %two)
  %v: f64[batch, seq, 1] = ReduceMean(%p) {axes = [2], keepdims = 1}
  const %eps: f64[] = 0.5
  %e: f64[batch, seq, 1] = Add(%v, %eps)
  %s: f64[batch, seq, 1] = Sqrt(%e)
  %n: f64[batch, seq, 4] = Div(%w, %s)
  %c: f32[batch, seq, 4] = Cast(%n) {to = "f32"}
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[batch, seq, 4] = Mul(%c, %gamma)
  return %y
})",
                 R"(graph g(%x: f32[batch, seq, 4]) {
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[batch, seq, 4] = LayerNormalization(%x, %gamma) {axis = -1, epsilon = 0.5}
  return %y
})");
}

TEST(FindLayerNorm, AMeanOverAnotherAxisIsNoLayerNorm) {
  EXPECT_UNCHANGED(find_layer_norm(), R"(graph g(%x: f32[batch, seq, 4]) {
  %m: f32[batch, 1, 4] = ReduceMean(%x) {axes = [1], keepdims = 1}
  %d: f32[batch, seq, 4] = Sub(%x, %m)
  %p: f32[batch, seq, 4] = Mul(%d, %d)
  %v: f32[batch, 1, 4] = ReduceMean(%p) {axes = [1], keepdims = 1}
  const %eps: f32[] = 0.5
  %e: f32[batch, 1, 4] = Add(%v, %eps)
  %s: f32[batch, 1, 4] = Sqrt(%e)
  %n: f32[batch, seq, 4] = Div(%d, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %g: f32[batch, seq, 4] = Mul(%n, %gamma)
  const %beta: f32[4] = [5, 6, 7, 8]
  %y: f32[batch, seq, 4] = Add(%g, %beta)
  return %y
})");
}

/// Of a square tensor, where means without their axis broadcast along the other one.
std::string square_layer_norm(bool keeps_mean, bool keeps_variance) {
  const auto type = [](bool keeps) { return keeps ? "f32[4, 1]" : "f32[4]"; };
  const std::string m = type(keeps_mean), v = type(keeps_variance);
  const auto mean = [](const char* of, bool keeps) {
    return std::string(" = ReduceMean(%") + of +
           ") {axes = [1], keepdims = " + (keeps ? "1}\n" : "0}\n");
  };
  return "graph g(%x: f32[4, 4]) {\n  %m: " + m + mean("x", keeps_mean) +
         R"(  %d: f32[4, 4] = Sub(%x, %m)
  %p: f32[4, 4] = Mul(%d, %d)
  %v: )" +
         v + mean("p", keeps_variance) + R"(  const %eps: f32[] = 0.5
  %e: )" +
         v + " = Add(%v, %eps)\n  %s: " + v + R"( = Sqrt(%e)
  %n: f32[4, 4] = Div(%d, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[4, 4] = Mul(%n, %gamma)
  return %y
})";
}

TEST(FindLayerNorm, AMeanThatDropsItsAxisStays) {
  EXPECT_UNCHANGED(find_layer_norm(), square_layer_norm(false, true));
  EXPECT_UNCHANGED(find_layer_norm(), square_layer_norm(true, false));
  EXPECT_NE(after(find_layer_norm(), square_layer_norm(true, true)),
            normal(square_layer_norm(true, true)));
}

TEST(FindLayerNorm, AnEpsilonThatAddsAxesStays) {
  EXPECT_UNCHANGED(find_layer_norm(), R"(graph g(%x: f32[batch, seq, 4]) {
  %m: f32[batch, seq, 1] = ReduceMean(%x) {axes = [-1], keepdims = 1}
  %d: f32[batch, seq, 4] = Sub(%x, %m)
  %p: f32[batch, seq, 4] = Mul(%d, %d)
  %v: f32[batch, seq, 1] = ReduceMean(%p) {axes = [2], keepdims = 1}
  const %eps: f32[1, 1, 1, 1] = 0.5
  %e: f32[1, batch, seq, 1] = Add(%v, %eps)
  %s: f32[1, batch, seq, 1] = Sqrt(%e)
  %n: f32[1, batch, seq, 4] = Div(%d, %s)
  const %gamma: f32[4] = [1, 2, 3, 4]
  %y: f32[1, batch, seq, 4] = Mul(%n, %gamma)
  return %y
})");
}

}  // namespace
}  // namespace bertcl::passes
