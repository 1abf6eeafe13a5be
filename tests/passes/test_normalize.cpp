// SPDX-License-Identifier: Apache-2.0
// The passes that give each thing one spelling.
#include "check.hpp"

namespace bertcl::passes {
namespace {

TEST(FoldConstants, ArithmeticOnConstants) {
  EXPECT_REWRITE(fold_constants(), R"(graph g(%x: f32[4]) {
  const %d: f32[] = 64
  %s: f32[] = Sqrt(%d)
  %y: f32[4] = Div(%x, %s)
  return %y as y
})",
                 R"(graph g(%x: f32[4]) {
  const %s_0: f32[] = 8
  %y: f32[4] = Div(%x, %s_0)
  return %y as y
})");
}

TEST(FoldConstants, Int8WeightsStayQuantized) {
  constexpr std::string_view weight = R"(graph g(%x: f32[2, 2]) {
  const %w: i8[2, 2] = [1, 2, 3, 4]
  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[2, 2] = MatMul(%x, %d)
  return %y as y
})";
  EXPECT_UNCHANGED(fold_constants(), weight);
  EXPECT_REWRITE(fold_dequantize(), weight, R"(graph g(%x: f32[2, 2]) {
  const %d_0: f32[2, 2] = [0.5, 0.5, 1.5, 1]
  %y: f32[2, 2] = MatMul(%x, %d_0)
  return %y as y
})");
}

TEST(FoldConstants, QuantizedVectorsFold) {
  EXPECT_REWRITE(fold_constants(), R"(graph g(%x: f32[2]) {
  const %w: i8[2] = [1, -2]
  const %s: f32[] = 0.5
  %d: f32[2] = DequantizeLinear(%w, %s)
  %y: f32[2] = Mul(%x, %d)
  return %y as y
})",
                 R"(graph g(%x: f32[2]) {
  const %d_0: f32[2] = [0.5, -1]
  %y: f32[2] = Mul(%x, %d_0)
  return %y as y
})");
}

TEST(FoldConstants, FloatWeightsThatAreQuantizedBecomeInt8) {
  EXPECT_REWRITE(fold_constants(), R"(graph g(%x: f32[1, 2]) {
  const %w: f32[2, 2] = [1.0, -0.26, 0.75, 9.0]
  const %s: f32[2] = [0.5, 0.25]
  const %z: i8[2] = [0, 0]
  %q: i8[2, 2] = QuantizeLinear(%w, %s, %z) {axis = 1}
  %d: f32[2, 2] = DequantizeLinear(%q, %s, %z) {axis = 1}
  %y: f32[1, 2] = MatMul(%x, %d)
  return %y as y
})",
                 R"(graph g(%x: f32[1, 2]) {
  const %q: i8[2, 2] = [2, -1, 2, 36]
  const %s: f32[2] = [0.5, 0.25]
  const %z: i8[2] = [0, 0]
  %d: f32[2, 2] = DequantizeLinear(%q, %s, %z) {axis = 1}
  %y: f32[1, 2] = MatMul(%x, %d)
  return %y as y
})");
}

TEST(ResolveShapes, ReshapeByShapeArithmeticTakesTheShapeFromItsType) {
  EXPECT_REWRITE(resolve_shapes(), R"(graph g(%x: f32[batch, seq, 8]) {
  %s: i64[3] = Shape(%x)
  const %zero: i64[1] = [0]
  const %one: i64[1] = [1]
  %b: i64[1] = Gather(%s, %zero) {axis = 0}
  %t: i64[1] = Gather(%s, %one) {axis = 0}
  const %heads: i64[2] = [2, 4]
  %c: i64[4] = Concat(%b, %t, %heads) {axis = 0}
  %y: f32[n0, n1, n2, n3] = Reshape(%x, %c)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 8]) {
  %y: f32[batch, seq, 2, 4] = Reshape(%x)
  return %y as y
})");
}

TEST(ResolveShapes, ADimensionThatIsANumberBecomesAConstant) {
  EXPECT_REWRITE(resolve_shapes(), R"(graph g(%x: f32[batch, 8]) {
  %s: i64[2] = Shape(%x)
  const %one: i64[] = 1
  %d: i64[] = Gather(%s, %one) {axis = 0}
  %f: f32[] = Cast(%d) {to = "f32"}
  %y: f32[batch, 8] = Div(%x, %f)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 8]) {
  const %d: i64[] = 8
  %f: f32[] = Cast(%d) {to = "f32"}
  %y: f32[batch, 8] = Div(%x, %f)
  return %y as y
})");
}

TEST(DropIdentity, WhatHandsItsOperandOnDisappears) {
  EXPECT_REWRITE(drop_identity(), R"(graph g(%x: f32[batch, 4]) {
  %a: f32[batch, 4] = Identity(%x)
  %b: f32[batch, 4] = Cast(%a) {to = "f32"}
  const %zero: f32[] = 0
  %c: f32[batch, 4] = Add(%zero, %b)
  %d: f32[4, batch] = Transpose(%c) {perm = [1, 0]}
  %e: f32[batch, 4] = Transpose(%d) {perm = [1, 0]}
  %f: f32[batch, 4] = Neg(%e)
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

TEST(FoldWeightTranspose, AxisMovesWithTheWeight) {
  EXPECT_REWRITE(fold_weight_transpose(), R"(graph g(%x: f32[1, 3]) {
  const %w: i8[2, 3] = [1, 2, 3, 4, 5, 6]
  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 3] = DequantizeLinear(%w, %s) {axis = 0}
  %t: f32[3, 2] = Transpose(%d) {perm = [1, 0]}
  %y: f32[1, 2] = MatMul(%x, %t)
  return %y as y
})",
                 R"(graph g(%x: f32[1, 3]) {
  const %w: i8[3, 2] = [1, 4, 2, 5, 3, 6]
  const %s: f32[2] = [0.5, 0.25]
  %d: f32[3, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[1, 2] = MatMul(%x, %d)
  return %y as y
})");
}

TEST(ShareCommon, EqualPairsBecomeOneAndOthersStay) {
  EXPECT_REWRITE(share_common(), R"(graph g(%x: f32[4]) {
  const %s1: f32[] = 0.5
  const %s2: f32[] = 0.5
  const %s3: f32[] = 0.25
  %a: i8[4] = QuantizeLinear(%x, %s1)
  %b: i8[4] = QuantizeLinear(%x, %s2)
  %c: i8[4] = QuantizeLinear(%x, %s3)
  return %a as a, %b as b, %c as c
})",
                 R"(graph g(%x: f32[4]) {
  const %s1: f32[] = 0.5
  %a: i8[4] = QuantizeLinear(%x, %s1)
  const %s3: f32[] = 0.25
  %c: i8[4] = QuantizeLinear(%x, %s3)
  return %a as a, %a as b, %c as c
})");
}

}  // namespace
}  // namespace bertcl::passes
